package engine

import (
	"reflect"
	"testing"

	"agentd/internal/store"
)

// Changes that gather while a commit is under way lose nothing: a part of a Tx that is
// not merged is lost under load alone.
func TestGatheredChangesAreWhole(t *testing.T) {
	// What no driver writes, or what is made when the commit is.
	apart := map[string]bool{"Fences": true, "Reserves": true, "Runs": true, "DropRules": true, "Proposals": true, "DropSessions": true, "NewKeys": true, "Keys": true,
		"NewSchedules": true, "Schedules": true, "DropSchedules": true, "Memories": true, // the timetable's, and what keeps the memory
		"Attempt": true,                                                  // the store's own
		"Nodes":   true, "Claims": true, "Holds": true, "DropMail": true} // a node's, in commits of their own
	a, b := &store.Tx{}, &store.Tx{}
	v := reflect.ValueOf(b).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
	merge(a, b)
	v = reflect.ValueOf(a).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() != 1 && !apart[name] {
			t.Errorf("merge leaves out %s: add it, or say here why no driver writes it", name)
		}
	}
}
