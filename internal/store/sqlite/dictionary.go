package sqlite

// dictionary1 is what form 1 of packed values may copy from. It is part of the
// file format: it never changes. A better one gets a new form.
const dictionary1 = `{"provider":"anthropic","model":"claude-sonnet","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stop_reason":"stop","stopReason":"toolUse","openai","api":"` +
	`{"role":"assistant","content":[{"type":"text","text":"{"role":"toolResult","content":[{"type":"toolCall","id":"call_","name":"read_file","arguments":{"path":"` +
	`"}],"timestamp":17"toolCallId":"toolu_","toolName":"","isError":true,"details":{"role":"user","content":` +
	`{"kind":"approval","message":"error","hint":"","field":"","status":"running","status":"completed","queued","paused_checkpoint","failed","cancelled"` +
	`{"session_id":"","root_run_id":"","parent_run_id":"","profile":"","profile_version":"1.0.0","mode":"interactive","mode":"autonomous",` +
	`{"interrupt_id":"","kind":"","prompt":"","schema":{"type":"object","properties":{"type":"string"}},"required":[""]},"tool_call":{"expires_at":"","decision":"approve","reason":"` +
	`{"run_id":"","session_id":"","tool_call_id":"","attempt":1,"class":"","delay_ms":0,"version":1,"state":{"phase":"calling_model","tools","steps":0,"epoch":0,"seq":0,"budget":{"spent":{"tokens":0,"tool_calls":0,"failures":0,"money":0},"queue":[],"pending":[],"effects":[],"calls":[{"id":"","parent":"","leaf":"","entry":"",` +
	`run_started run_completed run_resumed tool_stdout tool_stderr tool_progress checkpoint_required checkpoint_resolved subagent_started ` +
	`model_done tool_done call_model call_tool verdict model_failed effect input timer started resumed ` +
	`{"effect":"","input":{"run":"","step":1,"call":{"id":"","name":"","args":{"key":"","time":0,"ok":true,"verdict":"allow","result":"` +
	`text_delta{"text":"","block":1}thinking_delta final_text{"text":"","entry_id":"` +
	`step_started{"model":"` +
	`tool_input_started{"tool_call_id":"call_","name":"` +
	`tool_started{"tool_call_id":"call_","name":"","args":{"` +
	`tool_completed{"tool_call_id":"call_","name":"","result":"","entry_id":"","text":"","duration_ms":1tool_failed` +
	`step_completed{"model":"","stop_reason":"toolUse","usage":{"input":1,"output":1,"cost":{"input":0.00,"total":0.00},"cache_ratio":0.9,"tool_calls":1,"entry_id":"01`
