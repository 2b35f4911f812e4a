package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// value writes one JSON value on a line.
func (a *app) value(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(a.Out, "%s\n", escaped(b))
	}
	return err
}

// list writes rows: JSON values, or a table with a heading. row gives the cells;
// none is what is said when there are no rows.
func list[T any](a *app, rows []T, heading []string, row func(T) []string, none string) error {
	if a.asJSON() {
		for _, r := range rows {
			if err := a.value(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.Err, none)
		return err
	}
	w := table(a.Out)
	fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(row(r), "\t"))
	}
	return w.Flush()
}

// facts writes names and values below each other, and leaves out what is empty.
func facts(out io.Writer, pairs ...string) error {
	w := table(out)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", pairs[i], pairs[i+1])
		}
	}
	return w.Flush()
}

func table(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// indent puts spaces in front of each line of a text.
func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

// count says how many there are of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// wait says how many things wait.
func wait(n int, what string) string {
	if n == 1 {
		return "1 " + what + " waits"
	}
	return count(n, what) + " wait"
}

// printable drops what would drive the terminal: control characters, except for
// line ends and tabs, and marks that turn the direction of a text around.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if drives(r) {
			return -1
		}
		return r
	}, s)
}

// second shows a time of the API to the second, in UTC as everywhere.
func second(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return t.UTC().Format(time.RFC3339)
}

// took is the time between two times of the API, "" if one is missing.
func took(from, to string) string {
	f, err1 := time.Parse(time.RFC3339, from)
	t, err2 := time.Parse(time.RFC3339, to)
	if err1 != nil || err2 != nil {
		return ""
	}
	return t.Sub(f).Round(time.Millisecond).String()
}

// everything gathers pages until there are n values; 0 means all. more says that
// there are others.
func everything[T any](n int, page func(cursor string, limit int) ([]T, string, error)) (all []T, more bool, err error) {
	const most = 200
	for cursor := ""; ; {
		limit := most
		if n > 0 {
			limit = min(n-len(all), most)
		}
		rows, next, err := page(cursor, limit)
		if err != nil {
			return nil, false, err
		}
		all = append(all, rows...)
		if next == "" || next == cursor || n > 0 && len(all) >= n {
			return all, next != "", nil
		}
		cursor = next
	}
}

// tellMore says that a list was cut, where people look.
func (a *app) tellMore(more bool, what string) {
	if more && !a.asJSON() {
		fmt.Fprintf(a.Err, "there are more %s: --limit 0 lists all\n", what)
	}
}
