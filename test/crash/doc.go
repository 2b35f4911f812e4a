// Package crash kills the real binary with SIGKILL at random moments, again and
// again, and checks that nothing acknowledged is lost and nothing unsafe is
// repeated. AGENTD_KILLS sets how often (default 200), AGENTD_SEED the random seed.
package crash
