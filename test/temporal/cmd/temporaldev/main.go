// Command temporaldev is a Temporal server for tests: every service in one process, on
// loopback (its frontend wherever it is told to be), with SQLite, and with the limits lifted that a single shard has for
// production. It prints one line when it is ready, and ends with SIGTERM.
//
// What it keeps survives SIGKILL, but not the end of the machine. It is not for
// production: one shard, no TLS, nobody is asked who they are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

// local is where a server is that nobody is kept from.
const local = "127.0.0.1"

func main() {
	host := flag.String("host", local, "address of the frontend; everything else is on "+local)
	port := flag.Int("port", 7233, "port of the frontend")
	db := flag.String("db", "", "file of the database; empty keeps nothing")
	namespace := flag.String("namespace", "default", "namespace that is made")
	rps := flag.Int("pollrps", 2000, "polls per second of a shard's queues (Temporal's default is 20, which makes each step of a run take 50 ms)")
	suggest := flag.Int("suggest", 4096, "events of a history after which workflows are told to continue as new")
	level := flag.String("log", "fatal", "least level that is logged: debug, info, warn, error, fatal")
	flag.Parse()
	if err := serve(*host, *port, *db, *namespace, *level, *rps, *suggest); err != nil {
		fmt.Fprintln(os.Stderr, "temporaldev: "+err.Error())
		os.Exit(1)
	}
}

func serve(host string, port int, db, namespace, level string, rps, suggest int) error {
	cfg, store, err := configure(host, port, db)
	if err != nil {
		return err
	}
	if db != "" {
		if _, err := os.Stat(db); errors.Is(err, os.ErrNotExist) {
			if err := sqlite.SetupSchema(store); err != nil {
				return fmt.Errorf("the schema of %s: %w", db, err)
			}
		}
	}
	ns, err := sqlite.NewNamespaceConfig("active", namespace, false, nil)
	if err != nil {
		return err
	}
	if err := sqlite.CreateNamespaces(store, ns); err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	srv, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: level}))),
		temporal.WithDynamicConfigClient(dynamicconfig.StaticClient{
			dynamicconfig.TransferProcessorMaxPollRPS.Key():      rps,
			dynamicconfig.TimerProcessorMaxPollRPS.Key():         rps,
			dynamicconfig.VisibilityProcessorMaxPollRPS.Key():    rps,
			dynamicconfig.HistoryCountSuggestContinueAsNew.Key(): suggest,
		}),
		temporal.InterruptOn(temporal.InterruptCh()),
	)
	if err != nil {
		return err
	}
	go ready(net.JoinHostPort(host, strconv.Itoa(port)), namespace)
	return srv.Start() // until it is interrupted
}

// ready says when the frontend takes requests: its port is open a while before that.
func ready(addr, namespace string) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := client.DialContext(ctx, client.Options{HostPort: addr, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		cancel()
		if err == nil {
			c.Close()
			fmt.Println("ready", addr)
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

func configure(host string, port int, db string) (*config.Config, *config.SQL, error) {
	ports, err := freePorts(port, 10)
	if err != nil {
		return nil, nil, err
	}
	store := &config.SQL{PluginName: sqliteplugin.PluginName, DatabaseName: db, ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "1"}}
	if db == "" {
		store.DatabaseName = "temporaldev"
		store.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
	}
	service := func(i, grpc int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: grpc, MembershipPort: ports[i], BindOnLocalHost: true}}
	}
	frontend := service(0, port)
	if host != local { // where machines (or namespaces) are cut off from it
		frontend.RPC.BindOnLocalHost, frontend.RPC.BindOnIP = false, host
	}
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	cfg := &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: "127.0.0.1"},
			Metrics:    &metrics.Config{Prometheus: &metrics.PrometheusConfig{ListenAddress: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[8])), HandlerPath: "/metrics"}},
		},
		Persistence: config.Persistence{DefaultStore: "sqlite", VisibilityStore: "sqlite", NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{"sqlite": {SQL: store}}},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: "active", CurrentClusterName: "active",
			ClusterInformation: map[string]cluster.ClusterInformation{"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: addr}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{"frontend": frontend, "history": service(1, ports[4]), "matching": service(2, ports[5]), "worker": service(3, ports[6])},
		Archival: config.Archival{History: config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"}},
		PublicClient: config.PublicClient{HostPort: addr},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"}}},
	}
	return cfg, store, nil
}

// freePorts gives ports of loopback that nobody listened on a moment ago: those after
// the given one if possible, so that a server that comes back finds itself, and not what
// it left behind, among the members of its cluster.
func freePorts(after, n int) (ports []int, err error) {
	var all []net.Listener
	defer func() {
		for _, l := range all {
			l.Close()
		}
	}()
	for i := range n {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(after+1+i)))
		if err != nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			return nil, err
		}
		all = append(all, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
