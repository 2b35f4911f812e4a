package engine

import "agentd/message"

// UsageView is what the calls of one model used and cost.
type UsageView struct {
	Provider   string        `json:"provider"`
	Model      string        `json:"model"`
	Calls      int64         `json:"calls"`
	Input      int64         `json:"input"`
	Output     int64         `json:"output"`
	CacheRead  int64         `json:"cache_read"`
	CacheWrite int64         `json:"cache_write"`
	Cost       message.Money `json:"cost"`
}
