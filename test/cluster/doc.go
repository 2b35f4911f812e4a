// Package cluster shows that several processes of the real binary on PostgreSQL, with
// and without Temporal, keep their promises under load while one after the other dies:
// workers, API nodes, the database and the Temporal server are killed, a worker is
// stopped past its lease and woken, or cut off (with -tags netns, as root).
//
// No finished effect starts again, no `once` call happens twice without a person's
// word, each run ends as an undisturbed one, what was interrupted goes on within ten
// seconds, and each reader, who goes from node to node, sees each durable event once.
//
// AGENTD_CLUSTER_FAULTS sets how often each kind of fault comes (default 1),
// AGENTD_CLUSTER_RUNS how many runs there are at a time (default 40), AGENTD_SEED the
// random seed. `make test-cluster` is the long form.
package cluster
