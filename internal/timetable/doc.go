// Package timetable is what starts runs at certain times: the schedules of the
// configuration, and those that people make while agentd runs.
//
// It promises:
//
//   - Each due time starts one run, however many nodes tell of it and whatever dies in
//     between: the run's idempotency key is the schedule and the time that was due, and
//     nothing else is written then. What was started is found by those keys.
//   - What is about to start a run looks at the schedule first, so that one that was
//     paused, changed or deleted anywhere starts nothing from then on. Nodes learn of
//     new ones within Config.Poll, and then also of the times that were due meanwhile.
//   - A schedule is of one tenant; ids and names of others do not exist.
//   - The schedules of the configuration are shown and can be triggered. They are changed
//     where they are written.
package timetable
