package gateway

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// TestHostilePDFsAreRefusedOrReadAndNeverOurFault: the answer to any file is XML or a final refusal.
func TestHostilePDFsAreRefusedOrReadAndNeverOurFault(t *testing.T) {
	hostile := pdftest.Hostile(t)
	hostile["a large bomb"] = pdftest.Bomb(t, 1<<30)
	polyglots, damaged := pdftest.Polyglots(t), pdftest.Damaged(t)
	for _, r := range pdf.Readers() {
		s := serve(t, Config{Reader: r.Name(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		for name, document := range hostile {
			t.Run(r.Name()+" "+name, func(t *testing.T) {
				got := s.convert(t, "layout", document)
				var why refusal
				_ = json.Unmarshal(got.body, &why)
				switch {
				case polyglots[name] != nil && got.StatusCode != http.StatusUnsupportedMediaType:
					t.Errorf("a polyglot was answered with %d %s", got.StatusCode, why.Code)
				case damaged[name] != nil && why.Code != codeDamaged:
					t.Errorf("a damaged one was answered with %d %s", got.StatusCode, why.Code)
				case got.StatusCode == http.StatusOK:
					s.valid(t, "layout", got)
				case got.StatusCode >= 500 || why.Message == "":
					t.Errorf("the answer is %d %.200s", got.StatusCode, got.body)
				}
				t.Logf("%d %s", got.StatusCode, why.Code)
			})
		}
		for _, bomb := range []string{"a bomb", "a large bomb"} {
			s.convert(t, "text", hostile[bomb]).refused(t, 413, codeTooMuch)
		}
	}
}
