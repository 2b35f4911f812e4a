package model

import (
	"strings"
	"testing"
)

func BenchmarkEncodingText(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":    strings.Repeat("The quick brown fox reads 1,024 lines of main.go, and says: if err != nil { return nil, err }\n", 700),
		"cyrillic": strings.Repeat("Быстрая лиса читает строки файла и говорит, что всё хорошо.\n", 600),
		"han":      strings.Repeat("快速的狐狸读取文件的每一行并说一切都很好。\n", 1000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			e := EncodingOf("gpt-5.4")
			for b.Loop() {
				if e.Text(text) == 0 {
					b.Fatal("nothing")
				}
			}
		})
	}
}
