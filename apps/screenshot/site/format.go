package site

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/web"
)

func formatSeconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// second is for what happens within a minute, such as retries.
func second(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

func day(at time.Time) string { return cmp.Or(web.FormatMinute(at), "never") }
