// Package agentd is an agent runtime: it turns a model, tools and a folder of
// configuration into agents whose runs survive the end of their process.
//
//	rt, err := agentd.Open(ctx, agentd.Config{})
//	…
//	defer rt.Close()
//	run, err := rt.Start(ctx, agentd.StartRequest{Input: agentd.Text("What does this project do?")})
//	…
//	for ev, err := range rt.Watch(ctx, run.ID, 0) {
//		…
//	}
//
// A run that was accepted is durable: after a crash, the next Open goes on with
// it. Tool calls that must happen once are never repeated without a person's
// word. Everything a run does is an event with a number, which can be replayed
// and followed live ([Runtime.Watch]).
//
// The same runtime is the binary's: [Runtime.Handler] serves the native API and
// the faces for other clients.
package agentd
