package sqlite
import ("testing";"fmt")
func TestZZ(t *testing.T){
 s:=openTest(t, t.TempDir()+"/x.db", nil)
 for _,sql:=range []string{ sessionColumns+` WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND minute <= ? AND (updated, key) < (?, ?) ORDER BY minute DESC, updated DESC, key DESC LIMIT ?`,
 runColumns + runTables + "WHERE r.tenant = (SELECT key FROM tenants WHERE id = ?) AND r.key < ? ORDER BY r.key DESC LIMIT ?",
 runColumns + runTables + "WHERE r.tenant = (SELECT key FROM tenants WHERE id = ?) AND r.key < ? AND r.session = (SELECT key FROM sessions WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?) ORDER BY r.key DESC LIMIT ?",
 "SELECT entry, entries, body FROM journal WHERE run = ? AND last_seq > ? ORDER BY last_seq LIMIT ?",
 "SELECT entry, entries, body FROM journal WHERE run = ? ORDER BY key",
 interruptColumns+" AND (i.run = (SELECT key FROM runs WHERE tenant = (SELECT key FROM tenants WHERE id = ?) AND id = ?) OR i.root_id = ?) ORDER BY i.key LIMIT ?",
 } {
 fmt.Println(sql)
 args:=make([]any,0); for _,c:=range sql { if c=='?' { args=append(args,nil)} }
 fmt.Println(s.writer.query(t.Context(), "EXPLAIN QUERY PLAN "+sql, func(r row) error { fmt.Println("   ", r.text(3)); return nil }, args...))
 }
}
