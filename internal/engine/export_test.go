package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentd/fault"
	"agentd/internal/session"
	"agentd/internal/store"
)

func (h *harness) exported(sessionID string, o ExportOptions) string {
	h.t.Helper()
	write, err := h.engine.Export(h.t.Context(), ref(sessionID), o)
	if err != nil {
		h.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		h.t.Fatal(err)
	}
	return b.String()
}

func (h *harness) imports(tenant, file string) *Imported {
	h.t.Helper()
	in, err := h.engine.Import(h.t.Context(), ImportRequest{Tenant: tenant, File: strings.NewReader(file)})
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// artifactLines counts the artifacts of a file, with and without contents.
func artifactLines(file string) (with, without int) {
	for line := range strings.Lines(file) {
		switch {
		case !strings.HasPrefix(line, `{"type":"artifact"`):
		case strings.Contains(line, `"without":`):
			without++
		default:
			with++
		}
	}
	return with, without
}

// Artifacts and what requests leave out go along in a file, also to another tenant, and
// models can read on in them there.
func TestExportWithArtifacts(t *testing.T) {
	h := newHarness(t, asks, large())
	var ses, output string
	for _, of := range []string{"x", "y", "z"} {
		r := h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks(`large {"of":"` + of + `","bytes":40000}`)}), "completed")
		if ses = r.SessionID; of == "x" {
			output = r.Output
		}
	}
	first := idRE.FindStringSubmatch(output)[1]
	binary := strings.Repeat("\xff\x00", 20)
	sum := sha256.Sum256([]byte(binary))
	id := hex.EncodeToString(sum[:])
	said := h.said(ses, `large {"of":"y","bytes":40000}`)
	err := h.store.Commit(t.Context(), &store.Tx{Tenant: store.DefaultTenant, Blobs: []*store.Blob{{ID: id, MimeType: "image/x", Name: "b.bin", Created: 5, Data: []byte(binary)}},
		BlobUses:   []store.BlobUse{{SessionID: ses, BlobID: id, RunID: "run_gone", CallID: "c9"}},
		Quarantine: []*store.Quarantine{{SessionID: ses, EntryID: said, What: session.LeaveText, Reason: "refused", RunID: "run_gone", Created: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := h.artifacts(ses)
	file := h.exported(ses, ExportOptions{})
	for _, tenant := range []string{store.DefaultTenant, "other"} {
		in := h.imports(tenant, file)
		views, err := h.engine.Artifacts(t.Context(), Ref{tenant, in.ID})
		if err != nil || in.Artifacts != 4 || len(views) != 4 || len(in.Warnings) > 0 {
			t.Fatalf("%v %+v %+v", err, in, views)
		}
		for i, v := range views {
			want := *kept[i]
			want.SessionID, want.RunID = in.ID, session.ForeignRun(want.RunID)
			if *v != want {
				t.Errorf("%+v, want %+v", v, want)
			}
		}
		if name, mime, data, err := h.engine.Artifact(t.Context(), Ref{tenant, id}); err != nil || name != "b.bin" || mime != "image/x" || string(data) != binary {
			t.Errorf("%q %q %q %v", name, mime, data, err)
		}
		left, err := h.store.Quarantined(t.Context(), tenant, in.ID)
		if err != nil || len(left) != 1 || left[0].What != session.LeaveText || left[0].Reason != "refused" || left[0].Created != 7 {
			t.Errorf("%v %+v", err, left)
		}
		if e, err := h.store.Entry(t.Context(), tenant, in.ID, left[0].EntryID); err != nil || !strings.Contains(string(e.Body), `\"of\":\"y\"`) {
			t.Errorf("%v %+v", err, e)
		}
	}
	// It is the same again, and without its artifacts if that is asked for.
	in := h.imports(store.DefaultTenant, file)
	if with, without := artifactLines(h.exported(in.ID, ExportOptions{})); with != 4 || without != 0 {
		t.Errorf("%d and %d", with, without)
	}
	bare := h.exported(ses, ExportOptions{NoArtifacts: true})
	if !strings.HasPrefix(file, bare) || strings.Contains(bare, `"type":"artifact"`) || !strings.Contains(bare, `"type":"quarantine"`) {
		t.Errorf("%s", bare)
	}
	if err := h.engine.DeleteSession(t.Context(), ref(ses)); err != nil {
		t.Fatal(err)
	}
	out := h.ends(h.begin(StartRequest{SessionID: in.ID, Input: blocks(`read_artifact {"artifact_id":"` + first + `"}`)}), "completed").Output
	if !strings.Contains(out, "x\nx\nx") {
		t.Errorf("a model reads %.300s", out)
	}
}

// What does not fit is named, the oldest first; limits count for imports, too, and an id
// alone opens nothing.
func TestExportWithArtifactsHasLimits(t *testing.T) {
	h := newHarness(t, asks, large())
	ses := ""
	for _, of := range []string{"x", "y", "z"} {
		ses = h.ends(h.begin(StartRequest{SessionID: ses, Input: blocks(`large {"of":"` + of + `","bytes":40000}`)}), "completed").SessionID
	}
	whole := h.exported(ses, ExportOptions{})
	for _, c := range []struct {
		name   string
		limits TreeLimits
		with   int
	}{
		{"none", TreeLimits{}, 3}, {"contents", TreeLimits{ArtifactBytes: 90_000}, 2}, {"lines", TreeLimits{LineBytes: 30_000}, 0},
		{"the file", TreeLimits{FileBytes: int64(len(whole)) - 1}, 2},
	} {
		h.engine.cfg.Trees = c.limits
		file := h.exported(ses, ExportOptions{})
		if with, without := artifactLines(file); with != c.with || with+without != 3 {
			t.Errorf("%s: %d and %d", c.name, with, without)
		}
		in := h.imports("other", file)
		if in.Artifacts != c.with || len(in.Warnings) != 3-c.with {
			t.Errorf("%s: %+v", c.name, in)
		}
		for _, w := range in.Warnings {
			if !strings.Contains(w, "it does not fit: ") {
				t.Errorf("%s: %q", c.name, w)
			}
		}
		kept, err := h.engine.Artifacts(t.Context(), Ref{"other", in.ID})
		if err != nil || len(kept) != c.with {
			t.Fatalf("%s: %v, %d are kept", c.name, err, len(kept))
		}
		if c.with == 2 && kept[0].ID == idRE.FindStringSubmatch(whole)[1] {
			t.Errorf("%s: the oldest was kept", c.name)
		}
	}
	h.engine.cfg.Trees = TreeLimits{ArtifactBytes: 90_000}
	if in := h.imports("third", whole); in.Artifacts != 2 || !strings.Contains(fmt.Sprint(in.Warnings), "at most 90000") {
		t.Errorf("%+v", in)
	}
	h.engine.cfg.Trees, h.engine.cfg.Artifacts.Bytes = TreeLimits{}, 1000
	if in := h.imports("fourth", whole); in.Artifacts != 0 || len(in.Warnings) != 3 || !strings.Contains(in.Warnings[0], "artifacts.max_bytes") {
		t.Errorf("%+v", in)
	}
	// One that is damaged is told; its id does not open what the tenant has.
	h.engine.cfg.Artifacts.Bytes = 0
	in := h.imports(store.DefaultTenant, strings.ReplaceAll(whole, `"text":"x\n`, `"text":"q\n`))
	if in.Artifacts != 2 || len(in.Warnings) != 1 || !strings.Contains(in.Warnings[0], "its content is damaged") {
		t.Errorf("%+v", in)
	}
	if kept, _ := h.artifacts(in.ID); len(kept) != 2 {
		t.Errorf("%+v", kept)
	}
	_, _, _, err := h.engine.Artifact(t.Context(), Ref{"fourth", idRE.FindStringSubmatch(whole)[1]})
	h.refuses(err, fault.NotFound, "")
}

// A file brings contents back that expired since it was written, for as long as any other
// content that a session gets now; and so does whoever makes the same bytes again.
func TestExpiredArtifactsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, asks, large())
		h.limits = ArtifactLimits{Keep: 7 * 24 * time.Hour, Files: 2}
		h.restart()
		makes := func(session, of string) *Run {
			return h.ends(h.begin(StartRequest{SessionID: session, Input: blocks(`large {"of":"` + of + `","bytes":40000}`)}), "completed")
		}
		r := makes("", "x")
		id := idRE.FindStringSubmatch(r.Output)[1]
		later := idRE.FindStringSubmatch(makes(r.SessionID, "y").Output)[1]
		file := h.exported(r.SessionID, ExportOptions{})
		has := func(session string, want ...string) {
			t.Helper()
			synctest.Wait()
			views, err := h.engine.Artifacts(t.Context(), ref(session))
			var kept []string
			for _, v := range views {
				if v.ExpiredAt == "" {
					kept = append(kept, v.ID)
				}
			}
			if err != nil || len(views) != 2 || fmt.Sprint(kept) != fmt.Sprint(want) {
				t.Errorf("of %d are kept %v, not %v: %v", len(views), kept, want, err)
			}
		}
		pass(8 * 24 * time.Hour)
		has(r.SessionID)
		in := h.imports(store.DefaultTenant, file)
		has(in.ID, id, later)
		if out := h.ends(h.begin(StartRequest{SessionID: in.ID, Input: blocks(`read_artifact {"artifact_id":"` + id + `"}`)}), "completed").Output; !strings.HasPrefix(out, "x\nx\n") {
			t.Errorf("%.300s", out)
		}
		makes(r.SessionID, "x")
		pass(time.Hour)
		has(r.SessionID, id)
		if out := h.ends(h.begin(StartRequest{SessionID: r.SessionID, Input: blocks(`read_artifact {"artifact_id":"` + id + `"}`)}), "completed").Output; !strings.HasPrefix(out, "x\nx\n") {
			t.Errorf("%.300s", out)
		}
		// The oldest of a file go first, as they did where it is from.
		h.engine.cfg.Artifacts.Files = 1
		in = h.imports(store.DefaultTenant, file)
		has(in.ID, later)
		pass(8 * 24 * time.Hour)
		has(in.ID)
	})
}
