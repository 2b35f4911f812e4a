package profile

import "reflect"

// inert lists the keys of profiles that are accepted and checked, but have no
// effect in this version. Whoever makes one work removes it here. A key that
// stands at its default is not reported: its absence would do the same.
func inert() map[string]bool {
	return map[string]bool{
		"memory_enabled": true, "memory_provider": true, "write_policy": true, "read_policy": true,
		"retention_days": true, // long-term memory
		"domain":         true, // domain packs
	}
}

// inertValues lists values that are accepted and act like another one.
func inertValues() map[string]map[string]string {
	return map[string]map[string]string{}
}

// notices reports what was given and does nothing yet.
func (d *decoder) notices(p *Profile) {
	var base Profile
	setDefaults(reflect.ValueOf(&base).Elem())
	d.noticesOf("", reflect.ValueOf(p).Elem(), reflect.ValueOf(&base).Elem(), inert(), inertValues())
}

func (d *decoder) noticesOf(path string, v, base reflect.Value, keys map[string]bool, values map[string]map[string]string) {
	for _, f := range fieldsOf(v.Type()) {
		key := join(path, f.name)
		a, b := v.FieldByIndex(f.index), base.FieldByIndex(f.index)
		if !d.has(key) || d.wrong(key) || reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		pos := d.at(key)
		note := Problem{File: d.file, Line: pos.line, Column: pos.column, Key: key, Severity: SeverityNotice}
		switch {
		case keys[key]:
			note.Message = "accepted, has no effect yet in this version"
			d.problems = append(d.problems, note)
		case a.Kind() == reflect.String && values[key][a.String()] != "":
			note.Message = a.String() + " is accepted and works like " + values[key][a.String()] + " in this version"
			d.problems = append(d.problems, note)
		case a.Kind() == reflect.Struct:
			d.noticesOf(key, a, b, keys, values)
		}
	}
}
