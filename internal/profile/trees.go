package profile

// Sessions bounds what is read of session files (`agentd sessions import`) and copied of sessions (`agentd sessions fork`).
type Sessions struct {
	// Entries of one file, or of one fork.
	MaxEntries int `json:"max_entries" default:"100000" min:"1" max:"1000000"`
	// Bytes of one file.
	MaxFileBytes int64 `json:"max_file_bytes" default:"67108864" min:"1024"`
	// Bytes of one line of a file, which is one entry. Images are a part of their message.
	MaxLineBytes int64 `json:"max_line_bytes" default:"16777216" min:"1024"`
	// Bytes of the contents of all artifacts in one file, written or read; the newest first. What does not fit, also by the other limits, is named in the file without its content.
	MaxArtifactBytes int64 `json:"max_artifact_bytes" default:"33554432" min:"1024"`
}
