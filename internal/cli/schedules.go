package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"agentd"
	"agentd/client"
)

// timetable is what starts runs at certain times.
type timetable interface {
	Schedule(ctx context.Context, id string) (*client.Schedule, error)
	Schedules(ctx context.Context, cursor string, limit int) ([]*client.Schedule, string, error)
	CreateSchedule(ctx context.Context, req client.ScheduleRequest) (*client.Schedule, error)
	UpdateSchedule(ctx context.Context, id string, req client.ScheduleRequest) (*client.Schedule, error)
	DeleteSchedule(ctx context.Context, id string) error
	TriggerSchedule(ctx context.Context, id string) (*client.Run, error)
}

func (a *app) schedulesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "schedules", Short: "List, make and change what starts runs at certain times",
		Long: `List, make and change what starts runs at certain times. Servers and workers
start the runs; each due time starts one, however many of them there are.

Schedules of agentd.yaml are listed, too, and are changed there.`,
		Args: exactly(0, "a command: ls, show, create, update, pause, resume, trigger or rm"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	a.placeFlags(cmd)
	cmd.AddCommand(a.schedulesList(), a.schedulesShow(), a.schedulesCreate(), a.schedulesUpdate(), a.schedulesPause("pause", true), a.schedulesPause("resume", false),
		a.schedulesTrigger(), a.schedulesDelete())
	return cmd
}

func (a *app) schedulesList() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "ls", Short: "List schedules with the next time that is due and the last run", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return &usageError{errors.New("--limit must not be negative")}
			}
			return a.at(cmd.Context(), look, func(p place) error {
				rows, more, err := everything(limit, func(cursor string, limit int) ([]*client.Schedule, string, error) {
					return p.Schedules(cmd.Context(), cursor, limit)
				})
				if err != nil {
					return err
				}
				defer a.tellMore(more, "schedules")
				return list(a, rows, []string{"SCHEDULE", "NAME", "CRON", "ZONE", "PROFILE", "NEXT", "LAST RUN"}, func(s *client.Schedule) []string {
					return []string{s.ID, shorten(s.Name, 40), s.Cron, s.TimeZone, s.Profile, nextOf(s), lastOf(s)}
				}, "there are no schedules")
			})
		}}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "how many; 0 for all")
	return cmd
}

func nextOf(s *client.Schedule) string {
	switch {
	case s.Problem != "":
		return "never: " + shorten(s.Problem, 60)
	case s.Paused:
		return "paused"
	case len(s.Next) == 0:
		return "never"
	}
	return second(s.Next[0])
}

func lastOf(s *client.Schedule) string {
	if s.LastRun == nil {
		return ""
	}
	return s.LastRun.RunID + " " + s.LastRun.Status
}

func (a *app) showSchedule(s *client.Schedule) error {
	if a.asJSON() {
		return a.value(s)
	}
	last := ""
	if r := s.LastRun; r != nil {
		last = r.RunID + ", " + r.Status + ", triggered"
		if r.Due != "" {
			last = r.RunID + ", " + r.Status + ", due " + second(r.Due)
		}
	}
	var next []string
	for _, t := range s.Next {
		next = append(next, second(t))
	}
	if len(next) == 0 {
		next = []string{nextOf(s)}
	}
	busy := ""
	if s.Session == "one" {
		busy = s.WhenBusy
	}
	from := ""
	if s.Source == "config" {
		from = "agentd.yaml"
	}
	return facts(a.Out, "schedule", s.ID, "name", s.Name, "from", from, "cron", s.Cron+" ("+s.TimeZone+")", "profile", s.Profile, "input", shorten(s.Input, 200), "session", s.Session,
		"when busy", busy, "session mode", s.SessionMode, "catch up", s.CatchUp, "next", strings.Join(next, "\n\t"), "last run", last, "problem", s.Problem)
}

func (a *app) schedulesShow() *cobra.Command {
	return &cobra.Command{Use: "show SCHEDULE", Short: "Show a schedule, the times that are due next and its last run", Args: exactly(1, "the id or the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.at(cmd.Context(), look, func(p place) error {
				s, err := scheduleNamed(cmd.Context(), p, args[0])
				if err != nil {
					return err
				}
				return a.showSchedule(s)
			})
		}}
}

// scheduleNamed gives a schedule by its id, or by its name.
func scheduleNamed(ctx context.Context, p timetable, name string) (*client.Schedule, error) {
	if !strings.HasPrefix(name, "sch_") {
		rows, _, err := everything(0, func(cursor string, limit int) ([]*client.Schedule, string, error) {
			return p.Schedules(ctx, cursor, limit)
		})
		if err != nil {
			return nil, err
		}
		for _, s := range rows {
			if s.Name == name {
				return s, nil
			}
		}
	}
	return p.Schedule(ctx, name)
}

// scheduleFlags are the fields of a schedule. What is not given is left out of the request.
func scheduleFlags(cmd *cobra.Command) func() client.ScheduleRequest {
	var req client.ScheduleRequest
	f := cmd.Flags()
	var set []func()
	for _, x := range []struct {
		to         **string
		name, help string
	}{{&req.Name, "name", "what it is called; unique"}, {&req.Cron, "cron", `when: minute, hour, day of month, month, day of week, such as "0 3 * * 1-5"`},
		{&req.TimeZone, "time-zone", "time zone of these times, such as Europe/Berlin (default: UTC)"}, {&req.Profile, "profile", "profile of the runs"},
		{&req.Input, "input", "what the runs are told"}, {&req.Session, "session", "new: each run has one of its own; one: all are in the same (default: new)"},
		{&req.WhenBusy, "when-busy", "with --session one, what becomes of a run while the last one is under way: reject, enqueue or interrupt (default: reject)"},
		{&req.SessionMode, "session-mode", `mode that each run sets for its session: ask, plan or edit (default: it stays as it is; --session-mode "" goes back to that)`},
		{&req.CatchUp, "catch-up", "how late a run may be started that was due while no server was there, such as 2h (default: 0s)"}} {
		v := f.String(x.name, "", x.help)
		set = append(set, func() {
			if f.Changed(x.name) {
				*x.to = v
			}
		})
	}
	paused := f.Bool("paused", false, "start no runs for now")
	_ = cmd.RegisterFlagCompletionFunc("session", cobra.FixedCompletions([]string{"new", "one"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("session-mode", cobra.FixedCompletions(sessionModes(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("when-busy", cobra.FixedCompletions([]string{"reject", "enqueue", "interrupt"}, cobra.ShellCompDirectiveNoFileComp))
	return func() client.ScheduleRequest {
		for _, s := range set {
			s()
		}
		if f.Changed("paused") {
			req.Paused = paused
		}
		return req
	}
}

func (a *app) schedulesCreate() *cobra.Command {
	var fields func() client.ScheduleRequest
	cmd := &cobra.Command{Use: "create", Short: "Make a schedule", Args: exactly(0, "no arguments"),
		Example: `  agentd schedules create --name nightly --cron "0 3 * * *" --time-zone Europe/Berlin \
    --profile default --input "Look for what is new."`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := fields()
			if req.Name == nil || req.Cron == nil || req.Profile == nil || req.Input == nil {
				return &usageError{errors.New("a schedule needs --name, --cron, --profile and --input")}
			}
			return a.at(cmd.Context(), tend, func(p place) error {
				s, err := p.CreateSchedule(cmd.Context(), req)
				if err != nil {
					return err
				}
				return a.showSchedule(s)
			})
		}}
	fields = scheduleFlags(cmd)
	return cmd
}

func (a *app) schedulesUpdate() *cobra.Command {
	var fields func() client.ScheduleRequest
	cmd := &cobra.Command{Use: "update SCHEDULE", Short: "Change what is given of a schedule", Args: exactly(1, "the id or the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := fields()
			if req == (client.ScheduleRequest{}) {
				return &usageError{errors.New("say what is to change: --cron, --input, …")}
			}
			return a.tendSchedule(cmd.Context(), args[0], func(p place, id string) error {
				s, err := p.UpdateSchedule(cmd.Context(), id, req)
				if err != nil {
					return err
				}
				return a.showSchedule(s)
			})
		}}
	fields = scheduleFlags(cmd)
	return cmd
}

// tendSchedule changes a schedule that is there.
func (a *app) tendSchedule(ctx context.Context, name string, f func(p place, id string) error) error {
	id := ""
	return a.change(ctx, tend, func(p place) error {
		s, err := scheduleNamed(ctx, p, name)
		if err == nil {
			id = s.ID
		}
		return err
	}, func(p place) error { return f(p, id) })
}

func (a *app) schedulesPause(name string, paused bool) *cobra.Command {
	short := map[bool]string{true: "Have a schedule start no runs for now", false: "Have a paused schedule go on"}[paused]
	return &cobra.Command{Use: name + " SCHEDULE", Short: short, Args: exactly(1, "the id or the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tendSchedule(cmd.Context(), args[0], func(p place, id string) error {
				s, err := p.UpdateSchedule(cmd.Context(), id, client.ScheduleRequest{Paused: &paused})
				if err != nil {
					return err
				}
				return a.showSchedule(s)
			})
		}}
}

func (a *app) schedulesTrigger() *cobra.Command {
	return &cobra.Command{Use: "trigger SCHEDULE", Short: "Start a run of a schedule now", Args: exactly(1, "the id or the name of a schedule"),
		Long: `Start a run of a schedule now, also of one that is paused. On a data folder that no
server uses, the run goes on with the next server.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tendSchedule(cmd.Context(), args[0], func(p place, id string) error {
				r, err := p.TriggerSchedule(cmd.Context(), id)
				if err != nil {
					return err
				}
				if a.asJSON() {
					return a.value(r)
				}
				return facts(a.Out, "run", r.ID, "session", r.SessionID, "status", r.Status)
			})
		}}
}

func (a *app) schedulesDelete() *cobra.Command {
	return &cobra.Command{Use: "rm SCHEDULE", Short: "Delete a schedule; the runs that it started stay", Args: exactly(1, "the id or the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tendSchedule(cmd.Context(), args[0], func(p place, id string) error {
				if err := p.DeleteSchedule(cmd.Context(), id); err != nil {
					return err
				}
				_, err := fmt.Fprintf(a.Out, "schedule %s is deleted\n", id)
				return err
			})
		}}
}

func scheduleOf(s *agentd.Schedule, err error) (*client.Schedule, error) {
	if err != nil {
		return nil, err
	}
	out := &client.Schedule{ID: s.ID, Name: s.Name, Source: s.Source, Cron: s.Cron, TimeZone: s.TimeZone, Profile: s.Profile, Input: s.Input, Session: s.Session,
		WhenBusy: s.WhenBusy, SessionMode: s.SessionMode, CatchUp: s.CatchUp, Paused: s.Paused, Next: s.Next, Problem: s.Problem, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt}
	if s.LastRun != nil {
		last := client.ScheduledRun(*s.LastRun)
		out.LastRun = &last
	}
	return out, nil
}

// Schedule implements timetable.
func (l *local) Schedule(ctx context.Context, id string) (*client.Schedule, error) {
	return scheduleOf(l.rt.Schedule(ctx, id))
}

// Schedules implements timetable.
func (l *local) Schedules(ctx context.Context, cursor string, limit int) ([]*client.Schedule, string, error) {
	rows, next, err := l.rt.Schedules(ctx, cursor, limit)
	var out []*client.Schedule
	for _, r := range rows {
		s, _ := scheduleOf(r, nil)
		out = append(out, s)
	}
	return out, next, err
}

// CreateSchedule implements timetable.
func (l *local) CreateSchedule(ctx context.Context, req client.ScheduleRequest) (*client.Schedule, error) {
	return scheduleOf(l.rt.CreateSchedule(ctx, agentd.ScheduleRequest(req)))
}

// UpdateSchedule implements timetable.
func (l *local) UpdateSchedule(ctx context.Context, id string, req client.ScheduleRequest) (*client.Schedule, error) {
	return scheduleOf(l.rt.UpdateSchedule(ctx, id, agentd.ScheduleRequest(req)))
}

// DeleteSchedule implements timetable.
func (l *local) DeleteSchedule(ctx context.Context, id string) error {
	return l.rt.DeleteSchedule(ctx, id)
}

// TriggerSchedule implements timetable.
func (l *local) TriggerSchedule(ctx context.Context, id string) (*client.Run, error) {
	return runOf(l.rt.TriggerSchedule(ctx, id))
}
