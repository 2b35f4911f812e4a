package profile

import (
	"fmt"
	"strings"

	"agentd/internal/schedule"
)

// Schedule starts autonomous runs at certain times.
type Schedule struct {
	// What the schedule is called. Another name is another schedule.
	Name string `json:"name" required:"true" example:"nightly-report"`
	// When runs are started: minute, hour, day of month, month, day of week. Of two days both must match.
	Cron string `json:"cron" required:"true" example:"0 3 * * 1-5"`
	// Time zone of these times, by its IANA name. Empty: UTC.
	TimeZone string `json:"time_zone,omitempty" example:"Europe/Berlin"`
	// Profile of the runs.
	Profile string `json:"profile" required:"true" example:"default"`
	// What the runs are told.
	Input string `json:"input" required:"true" example:"Write the report of yesterday."`
	// Tenant of the runs.
	Tenant string `json:"tenant" default:"default"`
	// `new`: each run has a session of its own, and several may be under way. `one`: all runs are in one session, one after the other.
	Session string `json:"session" default:"new" enum:"new,one"`
	// With `session: one`, what becomes of a run that is due while the last one is still under way: it is left out (`reject`), waits (`enqueue`), or ends that one (`interrupt`).
	WhenBusy string `json:"when_busy" default:"reject" enum:"reject,enqueue,interrupt"`
	// Mode that each run sets for its session: how much the agent may touch. Empty: the mode stays as it is, and new sessions have that of the profile (`mode`).
	SessionMode string `json:"session_mode,omitempty" enum:"ask,plan,edit" example:"plan"`
	// How late a run may be started that was due while no server was there; of several that were missed it is the last. 0: missed runs are left out.
	CatchUp Duration `json:"catch_up" default:"0s" min:"0s" max:"168h"`
	// Start no runs for now.
	Paused bool `json:"paused" default:"false"`
}

// schedules checks what the schema can not say.
func (l *loader) schedules(d *decoder) {
	seen := map[string]bool{}
	for i, s := range l.config.Settings.Schedules {
		at := fmt.Sprintf("schedules[%d].", i)
		if key := at + "name"; s.Name != "" && !d.wrong(key) {
			switch {
			case !nameRE.MatchString(s.Name):
				d.fail(d.at(key), key, "is not a name", "use 1 to 64 letters, digits, dots, _ or -, beginning with a letter or digit")
			case strings.HasPrefix(s.Name, "sch_"):
				d.fail(d.at(key), key, "begins with sch_, as the ids of schedules do that people make", "choose another name")
			case seen[s.Name]:
				d.fail(d.at(key), key, "another schedule is named "+d.quote(key, s.Name), "rename one of them")
			}
			seen[s.Name] = true
		}
		if key := at + "cron"; s.Cron != "" && !d.wrong(key) {
			if _, err := schedule.Parse(s.Cron, ""); err != nil {
				d.fail(d.at(key), key, err.Error(), "write something like \"0 3 * * 1-5\": at 3:00, Monday to Friday")
			} else if _, err := schedule.Parse(s.Cron, s.TimeZone); err != nil {
				d.fail(d.at(at+"time_zone"), at+"time_zone", err.Error(), "use an IANA name such as Europe/Berlin")
			}
		}
		l.knownProfile(d, at+"profile", s.Profile)
	}
}
