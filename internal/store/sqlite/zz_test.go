package sqlite
import ("testing";"fmt")
func TestZZ(t *testing.T){
 s:=openTest(t, t.TempDir()+"/x.db", &Options{Durability:Process})
 st := newSteps("s", "run-0000000000000000000001", 1)
 commit(t, s, st.start())
 for i := range 200 { commit(t, s, st.step(i+1)...) }
 for _,q:=range []string{"SELECT name, sum(pgsize), sum(payload), sum(unused), count(*) FROM dbstat GROUP BY name ORDER BY 2 DESC"} {
 err:=s.writer.query(t.Context(), q, func(r row) error { fmt.Println(r.text(0), r.int(1)/200, r.int(2)/200, r.int(3)/200, r.int(4)); return nil })
 fmt.Println(err) }
 tot:=0; n:=0; plain:=0
 st = newSteps("s", "run-0000000000000000000001", 1); st.start()
 for i := range 200 { for k,tx:=range st.step(i+1) { js,_:=s.codec.journals(tx); tot+=len(js[0].body); plain+=len(js[0].plain); n++; if i==100 {fmt.Println(k,len(js[0].plain), len(js[0].body), len(s.packed(tx.Runs[0].State)), len(tx.Runs[0].State)); fmt.Printf("%q\n", js[0].body)}}}
 fmt.Println(tot/200, plain/200)
}
