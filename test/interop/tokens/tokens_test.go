package tokens

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"agentd/model"
)

type document struct{ name, text string }

// What an estimate may be off by, in parts of the real count: of a document, and of the
// whole corpus.
const (
	offDocument = 0.15
	offCorpus   = 0.10
	// offNear is for a document in a vocabulary that stands for others that are near.
	offNear = 0.20
	// longest is how much of a file is taken: large files would be all of the sum.
	longest = 16_000
)

// corpus is what agents read and write: this repository's documents, code and
// configuration, and small texts of other kinds and languages.
func corpus(t *testing.T) (docs []document) {
	t.Helper()
	for _, pattern := range []string{"testdata/*", "../../../*.md", "../../../docs/*.md", "../../../internal/engine/*.go", "../../../internal/run/*.go",
		"../../../model/*.go", "../../../internal/engine/*.md", "../../../internal/server/openapi.json", "../../../deploy/*.yml", "../../../Makefile", "../../npm/package-lock.json",
		"../../../../shared/data/synapse/corpus/*/000*.xml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_tables.go") {
				continue // two thirds are no text of anybody
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(b[:min(len(b), longest)]); len(text) > 500 {
				docs = append(docs, document{strings.TrimLeft(f, "./"), text})
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	raw := make([]byte, 2400)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	var table, hashes strings.Builder
	table.WriteString("id;city;amount;share;paid\n")
	for i := range 120 {
		fmt.Fprintf(&table, "%d;%s;%.2f;%.4f;2026-%02d-%02d\n", 10_000+i*7, []string{"Graz", "Oslo", "Porto", "Leeds"}[i%4], r.Float64()*5000, r.Float64(), i%12+1, i%28+1)
		fmt.Fprintf(&hashes, "%016x%016x  build/layer-%d.tar\n", r.Uint64(), r.Uint64(), i)
	}
	return append(docs, document{"base64", base64.StdEncoding.EncodeToString(raw)}, document{"table.csv", table.String()}, document{"hashes", hashes.String()})
}

func TestTextsAreEstimatedWithinATenth(t *testing.T) {
	docs := corpus(t)
	if len(docs) < 80 {
		t.Fatalf("%d documents: where is the repository?", len(docs))
	}
	for _, c := range []struct {
		id       string
		encoding tokenizer.Encoding
		off      float64
	}{{"gpt-5.4", tokenizer.O200kBase, offDocument}, {"llama-3.3", tokenizer.Cl100kBase, offNear}} {
		real, err := tokenizer.Get(c.encoding)
		if err != nil {
			t.Fatal(err)
		}
		estimate := model.EncodingOf(c.id)
		var off []float64
		guessed, counted := 0, 0
		for _, d := range docs {
			want, err := real.Count(d.text)
			if err != nil {
				t.Fatal(err)
			}
			got := int(estimate.Text(d.text))
			guessed, counted = guessed+got, counted+want
			by := float64(got)/float64(want) - 1
			off = append(off, math.Abs(by))
			if math.Abs(by) > c.off {
				t.Errorf("%s as %s: %d tokens estimated, %d real (%+.1f %%)", d.name, c.encoding, got, want, by*100)
			}
		}
		slices.Sort(off)
		sum, median := float64(guessed)/float64(counted)-1, off[len(off)/2]
		t.Logf("%s: %d documents, median %.1f %%, nine of ten within %.1f %%, worst %.1f %%, sum %+.1f %%", c.encoding, len(off), median*100, off[len(off)*9/10]*100, off[len(off)-1]*100, sum*100)
		if math.Abs(sum) > offCorpus || median > offCorpus {
			t.Errorf("%s: the sum is off by %+.1f %%, the median document by %.1f %%", c.encoding, sum*100, median*100)
		}
	}
}
