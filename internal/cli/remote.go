package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
	"agentd/event"
	"agentd/fault"
)

// Environment variables that stand for flags.
const (
	serverVariable = "AGENTD_SERVER"
	keyVariable    = "AGENTD_API_KEY"
	oldKeyVariable = "AGENTD_KEY"
)

// runs are the runs of a server or of a store.
type runs interface {
	Run(ctx context.Context, id string) (*client.Run, error)
	Runs(ctx context.Context, f client.RunFilter) ([]*client.Run, string, error)
	Replay(ctx context.Context, id string, after int64) iter.Seq2[event.Event, error]
	Watch(ctx context.Context, id string, after int64) iter.Seq2[event.Event, error]
	Cancel(ctx context.Context, id, reason string) (*client.Run, error)
	Trace(ctx context.Context, id string, after, limit int) (rows []*client.Trace, more bool, err error)
}

// sessions are the conversations.
type sessions interface {
	Session(ctx context.Context, id string) (*client.Session, error)
	Sessions(ctx context.Context, f client.SessionFilter) ([]*client.Session, string, error)
	Entries(ctx context.Context, id string) ([]*client.Entry, error)
	DeleteSession(ctx context.Context, id string) error
}

// interrupts are the waits for people.
type interrupts interface {
	Interrupt(ctx context.Context, id string) (*client.Interrupt, error)
	Interrupts(ctx context.Context, status, cursor string, limit int) ([]*client.Interrupt, string, error)
	Answer(ctx context.Context, req client.AnswerRequest) (*client.Interrupt, error)
}

// place is where runs are: a server or a data folder.
type place interface {
	runs
	sayer
	sessions
	trees
	interrupts
	keyring
	rulings
	proposals
	artifacts
	compactor
	caches
	purses
	timetable
	memories
	Close() error
}

// server is a place on the network.
type server struct{ *client.Client }

// Close implements place.
func (server) Close() error { return nil }

// access says what a data folder is opened for.
type access int

const (
	look access = iota // read, also beside a server
	tend               // change, without going on with other runs
)

// placeFlags are the flags of commands that work on a server or on a data folder.
func (a *app) placeFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&a.server, "server", "", "address of a server, such as http://127.0.0.1:7070 (default: $"+serverVariable+")")
	f.StringVar(&a.key, "api-key", "", "API key for the server, or @FILE with it, which others on this machine do not see (default: $"+keyVariable+")")
	f.StringVar(&a.tenant, "tenant", "", "tenant to look at in a data folder (default: default); a server's key names it")
	f.StringVar(&a.data, "data", "", "data folder, when no server is asked (default: the user's)")
	f.StringVar(&a.store, "store", "", "PostgreSQL database, when no server is asked: postgres://USER@HOST/DATABASE (default: $"+storeVariable+")")
	f.StringVar(&a.configs, "configs", "", "configuration of that data folder's runs (default: ./configs if it has agents/, else the built-in one)")
	_ = cmd.MarkPersistentFlagDirname("data")
	_ = cmd.MarkPersistentFlagDirname("configs")
}

// address is that of the server to ask; "" means the data folder.
func (a *app) address() (string, error) {
	switch {
	case a.server != "" && a.data+a.store != "":
		return "", &usageError{errors.New("give --server or --data, not both")}
	case a.data == ":memory:":
		return "", &usageError{errors.New("--data :memory: keeps nothing that could be looked at; name a folder")}
	case a.server != "" || a.data != "" || a.store != "":
		return a.server, nil
	}
	return os.Getenv(serverVariable), nil
}

// place opens where the flags point to.
func (a *app) place(ctx context.Context, need access) (place, error) {
	address, err := a.address()
	if err != nil {
		return nil, err
	}
	if address != "" && a.tenant != "" && !a.manages {
		return nil, &usageError{errors.New("--tenant is for data folders: on a server the API key names the tenant")}
	}
	if address != "" {
		key, err := a.apiKey()
		if err != nil {
			return nil, err
		}
		c, err := client.New(address, &client.Options{Key: key})
		if err != nil {
			return nil, err
		}
		return server{c}, nil
	}
	if a.data == "" && a.store == "" {
		// Without its settings nobody knows which folder is meant.
		if err := agentd.CheckSettings(a.configsFolder()); err != nil {
			return nil, err
		}
	}
	data, err := a.dataFolder()
	if err != nil {
		return nil, err
	}
	rt, err := agentd.Open(ctx, agentd.Config{Configs: a.configsFolder(), Data: data, Tenant: a.tenant, Log: a.logger(), ReadOnly: need == look, Dormant: need == tend})
	if err == nil {
		return &local{rt}, nil
	}
	var f *fault.Error
	if need != look && errors.As(err, &f) && f.Kind == fault.Conflict {
		return nil, &fault.Error{Kind: fault.Conflict, Err: fmt.Errorf("a server is using this data folder: %w", f.Err),
			Hint: "Use --server URL, with the address that the server printed when it started."}
	}
	return nil, err
}

// at runs f at the place and closes it.
func (a *app) at(ctx context.Context, need access, f func(place) error) (err error) {
	p, err := a.place(ctx, need)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return f(p)
}

// change looks first and changes then: what is not there is said without
// opening the data folder for writing, which would create it.
func (a *app) change(ctx context.Context, need access, check, f func(place) error) error {
	if err := a.at(ctx, look, check); err != nil {
		return err
	}
	return a.at(ctx, need, f)
}

// where gives the flags that lead another command to the same place.
func (a *app) where() string {
	s := ""
	for _, f := range []struct{ name, value string }{{"server", a.server}, {"data", a.data}, {"store", a.store}, {"configs", a.configs}, {"tenant", a.tenant}} {
		if f.value == "" {
			continue
		}
		if strings.ContainsAny(f.value, " '\"\\$&;|<>()*?") {
			f.value = "'" + strings.ReplaceAll(f.value, "'", `'\''`) + "'"
		}
		s += " --" + f.name + " " + f.value
	}
	return s
}
