package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one measured number.
type row struct {
	what, value, limit string
	// verdict is "yes", "NO", or empty where there is no limit.
	verdict string
}

// note adds a number without a limit.
func (b *bench) note(what, format string, args ...any) {
	b.rows = append(b.rows, row{what: what, value: fmt.Sprintf(format, args...)})
}

// atMost adds a number with an upper limit.
func (b *bench) atMost(what string, v, limit float64, unit string) {
	b.rows = append(b.rows, row{what, number(v) + " " + unit, "≤ " + number(limit) + " " + unit, verdict(v <= limit)})
}

// atLeast adds a number with a lower limit.
func (b *bench) atLeast(what string, v, limit float64, unit string) {
	b.rows = append(b.rows, row{what, fmt.Sprintf("%.2f %s", v, unit), fmt.Sprintf("≥ %.1f %s", limit, unit), verdict(v >= limit)})
}

// compare adds a number with a limit that comes from another of the same run.
func (b *bench) compare(what string, v, limit float64, unit, rule string, ok bool) {
	b.rows = append(b.rows, row{what, number(v) + " " + unit, rule + " = " + number(limit) + " " + unit, verdict(ok)})
}

func verdict(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}

func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func (b *bench) print(w io.Writer) {
	fmt.Fprintf(w, "%s, %s, %d processors, %s/%s, %s; load at the end %s\n\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"), processor(),
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), loadAverage())
	fmt.Fprintln(w, "| measured | value | limit | holds |\n|---|---|---|---|")
	for _, r := range b.rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.value, r.limit, r.verdict)
	}
}

func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown processor"
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// spread is a median with the least and the greatest.
func spread(v []float64, unit string) string {
	if len(v) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s %s (%s to %s)", number(median(v)), unit, number(slices.Min(v)), number(slices.Max(v)))
}
