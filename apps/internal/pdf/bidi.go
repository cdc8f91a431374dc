package pdf

import (
	"slices"

	"golang.org/x/text/unicode/bidi"
)

// A way is the direction of a text.
type way byte

const (
	neutral way = iota
	rightward
	leftward
	digit
)

// direction returns the direction of the first character that has one.
func direction(text string) way {
	for _, r := range text {
		props, _ := bidi.LookupRune(r)
		switch props.Class() {
		case bidi.L:
			return rightward
		case bidi.R, bidi.AL:
			return leftward
		case bidi.EN, bidi.AN:
			return digit
		}
	}
	return neutral
}

// logical converts a line from visual order (left to right) to logical order, in which it is read. A line without right-to-left letters is unchanged. In other lines,
// numbers and left-to-right words keep their own direction.
func logical[T any](line []T, text func(T) string) []T {
	ways := make([]way, len(line))
	right, left := 0, 0
	for i, item := range line {
		switch ways[i] = direction(text(item)); ways[i] {
		case rightward:
			right++
		case leftward:
			left++
		}
	}
	if left == 0 {
		return line
	}
	levels := levelsOf(ways, isLeftward(ways, left >= right), func(i int) bool { return text(line[i]) == " " })
	out := slices.Clone(line)
	for level := 2; level > 0; level-- {
		for from := 0; from < len(out); from++ {
			to := from
			for to < len(out) && levels[to] >= level {
				to++
			}
			if to > from {
				slices.Reverse(out[from:to])
				slices.Reverse(levels[from:to])
				from = to
			}
		}
	}
	return out
}

// isLeftward reports whether a line as a whole runs from right to left: as both its ends do or, if they differ, as most of it does.
func isLeftward(ways []way, most bool) bool {
	strong := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w != leftward && w != rightward })
	if first, last := strong[0], strong[len(strong)-1]; first == last {
		return first == leftward
	}
	return most
}

// levelsOf returns the embedding level of each item: 0 and 2 run to the right, 1 to the left. A neutral item takes the direction of its neighbours if they agree, otherwise
// that of the line. A space between numbers takes that of the line, because they are two numbers.
func levelsOf(ways []way, whole bool, isSpace func(int) bool) []int {
	levels := make([]int, len(ways))
	base, right := 0, 0
	if whole {
		base, right = 1, 2
	}
	for i, w := range ways {
		before, behind := nextTo(ways, i, -1), nextTo(ways, i, +1)
		switch {
		case w == leftward:
			levels[i] = 1
		case w == rightward, w == digit && whole:
			levels[i] = right
		case w == digit && before == leftward && behind == leftward:
			levels[i] = 2
		case w == digit:
			levels[i] = 0
		case before == rightward && behind == rightward, before == digit && behind == digit && !isSpace(i):
			levels[i] = right
		case before == leftward && behind == leftward:
			levels[i] = 1
		default:
			levels[i] = base
		}
	}
	return levels
}

// nextTo returns the direction of the nearest item on one side that has one. For a digit, other digits are skipped.
func nextTo(ways []way, i, step int) way {
	own := ways[i]
	for i += step; i >= 0 && i < len(ways); i += step {
		if ways[i] != neutral && (own != digit || ways[i] != digit) {
			return ways[i]
		}
	}
	return neutral
}
