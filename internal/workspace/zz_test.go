package workspace
import ("testing";"runtime";"time";"agentd/tool")
func TestPerf(t *testing.T){ w,_:=New(runtime.GOROOT(),nil); s:=time.Now(); r,_:=w.Tools()[2].Run(t.Context(),tool.Call{Args:[]byte(`{"pattern":"func Unlikely[A-Z]zz","output_mode":"count"}`)}); t.Log(time.Since(s), text(r)); s=time.Now(); r,_=w.Tools()[1].Run(t.Context(),tool.Call{Args:[]byte(`{"pattern":"**/*.zzz"}`)}); t.Log(time.Since(s), text(r))}
