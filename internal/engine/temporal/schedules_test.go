package temporal

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"agentd/internal/schedule"
)

// planner is a Temporal that notes what becomes of its schedules, and refuses one.
type planner struct {
	client.Client
	have   []string
	refuse string
	got    []string
}

func (p *planner) ScheduleClient() client.ScheduleClient { return plans{p: p} }
func (p *planner) Close()                                {}

type plans struct {
	client.ScheduleClient
	p *planner
}

func (c plans) List(context.Context, client.ScheduleListOptions) (client.ScheduleListIterator, error) {
	l := plansList(slices.Clone(c.p.have))
	return &l, nil
}

func (c plans) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	if o.ID == c.p.refuse {
		return nil, serviceerror.NewInvalidArgument("invalid schedule spec")
	}
	c.p.got = append(c.p.got, "create "+o.ID+" "+strings.Join(o.Spec.CronExpressions, "; "))
	return nil, nil
}

func (c plans) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return plan{p: c.p, id: id}
}

type plansList []string

func (l *plansList) HasNext() bool { return len(*l) > 0 }

func (l *plansList) Next() (*client.ScheduleListEntry, error) {
	id := (*l)[0]
	*l = (*l)[1:]
	return &client.ScheduleListEntry{ID: id}, nil
}

type plan struct {
	client.ScheduleHandle
	p  *planner
	id string
}

func (h plan) Delete(context.Context) error {
	if h.id == h.p.refuse {
		return serviceerror.NewInternal("no")
	}
	h.p.got = append(h.p.got, "delete "+h.id)
	return nil
}

// items are schedules of these ids.
func items(t *testing.T, cron string, ids ...string) func(context.Context) ([]schedule.Item, error) {
	t.Helper()
	times, err := schedule.Parse(cron, "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var all []schedule.Item
	for _, id := range ids {
		all = append(all, schedule.Item{ID: id, Times: times, Revision: 1, CatchUp: time.Hour})
	}
	return func(context.Context) ([]schedule.Item, error) { return all, nil }
}

// A schedule that Temporal does not take, or does not let go of, keeps no other from it:
// they may be other tenants'.
func TestOneScheduleThatIsRefusedKeepsNoOtherBack(t *testing.T) {
	for _, bad := range []string{"acme/sch_bad", "acme/sch_old"} {
		p := &planner{}
		x := connected(p)
		defer x.Close()
		p.refuse, p.have = x.queues.scheduleID(bad), []string{x.queues.scheduleID("acme/sch_old"), x.queues.scheduleID("acme/sch_older"), "somebody-else's"}
		err := x.arrangeOnce(&schedules{load: items(t, "0 3 * * *", "acme/sch_bad", "umbrella/sch_good")})
		if err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%v, which does not name %s", err, bad)
		}
		var want []string
		for _, s := range []string{"create acme/sch_bad", "create umbrella/sch_good", "delete acme/sch_old", "delete acme/sch_older"} {
			if verb, id, _ := strings.Cut(s, " "); id != bad {
				want = append(want, verb+" "+x.queues.scheduleID(id))
			}
		}
		slices.Sort(p.got)
		for i, s := range p.got {
			p.got[i] = strings.TrimSuffix(s, " 0 3 * * *")
		}
		if !slices.Equal(p.got, want) {
			t.Errorf("%s is refused: %q, want %q", bad, p.got, want)
		}
	}
}

// What Temporal's reader of expressions does not know it is not given.
func TestTemporalIsToldLists(t *testing.T) {
	p := &planner{}
	x := connected(p)
	defer x.Close()
	if err := x.arrangeOnce(&schedules{load: items(t, "0 22-1 ? * fri-mon", "acme/sch_a")}); err != nil {
		t.Fatal(err)
	}
	if want := "create " + x.queues.scheduleID("acme/sch_a") + " 0 0,1,22,23 * * 0,1,5,6"; !slices.Equal(p.got, []string{want}) {
		t.Errorf("it was told %q", p.got)
	}
}
