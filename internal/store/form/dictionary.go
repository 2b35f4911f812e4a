package form

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

// dictionary2 is that of form 2. It holds what journals, states and specs look
// like, with what differs left out, so that long pieces can be copied at once; the
// bytes between the events of a journal are numbers and lengths (see codec.encode).
const dictionary2 = `"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-sonnet-haiku-","responseId":"msg_01","stopReason":"length","error","aborted","errorMessage":"` +
	`{"type":"thinking","text":"","signature":"","redacted":true,{"type":"image","data":"","mimeType":"image/png","name":"read_file","arguments":{"path":"","pattern":"","query":"` +
	`"toolCallId":"toolu_01","toolName":"","isError":true,"details":{"cacheRead":1,"cacheWrite":1,"reasoning":1,` +
	`{"kind":"approval","message":"error","hint":"","field":"","status":"queued","paused_checkpoint","failed","cancelled","deny","capture"` +
	`{"session_id":"ses_","root_run_id":"run_","parent_run_id":"run_","profile":"default","profile_version":"1.0.0","mode":"autonomous","mode":"interactive","model":"anthropic/claude-` +
	`{"interrupt_id":"int_","kind":"question","prompt":"","schema":{"type":"object","properties":{"type":"string"}},"required":[""]},"tool_call":{"expires_at":"","decision":"approve","reason":"` +
	`{"role":"user","content":[{"type":"text","text":""}],"timestamp":17` +
	`{"role":"toolResult","content":[{"type":"text","text":""}],"timestamp":17,"toolCallId":"call_","toolName":""}` +
	`{"role":"assistant","content":[{"type":"text","text":""},{"type":"toolCall","id":"call_","name":"","arguments":{"` +
	`"}}],"timestamp":17,"api":"openai-completions","provider":"openai","model":"gpt-","responseId":"chatcmpl-","stopReason":"stop","stopReason":"toolUse","usage":{"input":1,"output":1,"totalTokens":1,` +
	`{"tool_call_id":"","attempt":1,"class":"","delay_ms":0,"error":"","retry_after_ms":` +
	`run_started run_failed run_cancelled run_resumed tool_stdout tool_stderr tool_progress checkpoint_required checkpoint_resolved subagent_started subagent_completed artifact_created model_retry ` +
	`{"entry_base":"01","prompt":["in_01"],"overrides":{}}` +
	`{"in":{"now":17,"settings":{"models":1,"max_steps":50,"max_tool_calls":,"max_run_ms":600000,"retry":{"max":3,"base_ms":1000,"limit_ms":60000}},"entry_base":"01","leaf":"01","prompt":["in_` +
	`{"v":1,"run":"run_01","session":"ses_01","status":"completed","phase":"ended","settings":{"models":1,"max_steps":50,"max_run_ms":600000,` +
	`"retry":{"max":3,"base_ms":1000,"limit_ms":60000}},"entry_base":"01","entries":1,"leaf":"01","step":1,"turn_steps":1,"tool_calls":1,"usage":{` +
	`"status":"running","phase":"tools","calls":[{"id":"call_","name":"","phase":"done","effect":"read","entry":"01"}],"model":{"entry":"01","attempt":1},` +
	`"stop_reason":"stop","output":"01","trail":["Started:idle>model","ModelDone:model>tools","Verdict:tools","ToolDone:tools>model","ModelDone:model>tools","Verdict:tools","ToolDone:tools>model","ModelDone:model>ended"]}` +
	"\x00\ntext_delta{\"$\":{\"e\":\"01\",\"b\":1,\"o\":1,\"n\":thinking_delta" +
	"\x01\x00\x02\x0estep_completed\xbe\x01{\"model\":\"\",\"stop_reason\":\"stop\",\"usage\":{\"input\":1,\"output\":1,\"cacheRead\":1,\"cacheWrite\":1,\"reasoning\":1,\"totalTokens\":1," +
	"\"cost\":{\"input\":0.00,\"output\":0.00,\"cacheRead\":0.00,\"cacheWrite\":0.00,\"total\":0.00}},\"cache_ratio\":0.9" +
	",\"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"total\":0}},\"entry_id\":\"01" +
	"\x00\nfinal_text\x1f{\"$\":{\"e\":\"01\"}}\x01\x00\x02\rrun_completed\xaf\x01{\"stop_reason\":\"stop\",\"usage\":{\"input\":\"steps\":2,\"tool_calls\":1}" +
	"\x02\x12tool_input_started8{\"tool_call_id\":\"call_\",\"name\":\"\"}" +
	"\x01\x00\x02\x0estep_completed\xce\x01{\"model\":\"\",\"stop_reason\":\"toolUse\",\"usage\":{\"input\":1,\"output\":1,\"totalTokens\":1,\"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,\"total\":0}},\"tool_calls\":1,\"entry_id\":\"01\"}" +
	"\x01\x00\x02\ftool_started\\{\"$\":{\"p\":{\"tool_call_id\":\"call_\",\"name\":\"\"},\"e\":\"01\"}}" +
	"\x01\x00\x02\x0etool_completedW{\"tool_call_id\":\"call_\",\"name\":\"\",\"duration_ms\":1,\"entry_id\":\"01\"}tool_failed" +
	"\x01\x00\x04\fstep_started\x17{\"model\":\"\"}" +
	"\x03\x00\tModelDonef{\"in\":{\"now\":17},\"do\":[{\"k\":\"Judge\",\"a\":{\"call\":\"call_\",\"name\":\"\"}}]}" +
	"\x00\aVerdict\xac\x02{\"in\":{\"now\":17,\"call\":\"call_\",\"decision\":\"allow\",\"reason\":\"no rule asks for approval\",\"effect\":\"idempotent\",\"effect\":\"once\",\"effect\":\"read\"},\"do\":[{\"k\":\"CallTool\",\"a\":{\"call\":\"call_" +
	"\",\"name\":\"\",\"effect\":\"once\",\"effect\":\"read\",\"key\":\"run_01/1/call_\",\"step\":1}}]}" +
	"\x00\bToolDone\x8d\x01{\"in\":{\"now\":17,\"call\":\"call_\",\"duration_ms\":1},\"do\":[{\"k\":\"CallModel\",\"a\":{\"step\":1,\"attempt\":1,\"entry\":\"01"
