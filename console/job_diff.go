package console

import (
	"fmt"
	"strings"
)

// A diffLine is a line of a difference: unchanged, removed, added, or a note about lines left out.
type diffLine struct{ Sign, Tone, Text string }

const (
	diffAround = 3         // unchanged lines shown around a change
	maxDiff    = 4_000_000 // pairs of lines that are compared; beyond that, all lines in between count as changed
	maxLines   = 2000      // lines shown
)

// difference compares two texts line by line. Long parts without a change are left out.
func difference(was, is string) []diffLine {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	all := kept(nil, a[:head])
	all = append(all, compare(a[head:len(a)-tail], b[head:len(b)-tail])...)
	all = kept(all, a[len(a)-tail:])
	return folded(all)
}

func kept(all []diffLine, lines []string) []diffLine {
	for _, one := range lines {
		all = append(all, diffLine{" ", "same", one})
	}
	return all
}

// compare returns a difference based on the longest common subsequence of lines.
func compare(a, b []string) (all []diffLine) {
	gone := func(text string) { all = append(all, diffLine{"-", "gone", text}) }
	fresh := func(text string) { all = append(all, diffLine{"+", "new", text}) }
	var long [][]int32
	if len(a)*len(b) <= maxDiff {
		long = make([][]int32, len(a)+1)
		long[len(a)] = make([]int32, len(b)+1)
		for i := len(a) - 1; i >= 0; i-- {
			long[i] = make([]int32, len(b)+1)
			for j := len(b) - 1; j >= 0; j-- {
				if long[i][j] = max(long[i+1][j], long[i][j+1]); a[i] == b[j] {
					long[i][j] = long[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) && long != nil {
		switch {
		case a[i] == b[j]:
			all = append(all, diffLine{" ", "same", a[i]})
			i, j = i+1, j+1
		case long[i+1][j] >= long[i][j+1]:
			gone(a[i])
			i++
		default:
			fresh(b[j])
			j++
		}
	}
	for ; i < len(a); i++ {
		gone(a[i])
	}
	for ; j < len(b); j++ {
		fresh(b[j])
	}
	return all
}

// folded replaces lines far from any change by a note.
func folded(all []diffLine) (shown []diffLine) {
	near := make([]bool, len(all))
	for i, one := range all {
		if one.Tone != "same" {
			for k := max(i-diffAround, 0); k <= min(i+diffAround, len(all)-1); k++ {
				near[k] = true
			}
		}
	}
	left := 0
	flush := func() {
		if left > 0 {
			shown = append(shown, diffLine{"", "left", fmt.Sprintf("%s without a change", plural(left, "line"))})
		}
		left = 0
	}
	for i, one := range all {
		if !near[i] {
			left++
			continue
		}
		flush()
		if len(shown) >= maxLines {
			return append(shown, diffLine{"", "left", fmt.Sprintf("%s not shown", plural(len(all)-i, "line"))})
		}
		one.Text = truncate(one.Text, maxLineBytes)
		shown = append(shown, one)
	}
	flush()
	return shown
}
