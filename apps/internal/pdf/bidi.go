package pdf

import (
	"slices"

	"golang.org/x/text/unicode/bidi"
)

// Which way text runs.
type way byte

const (
	neutral way = iota
	rightward
	leftward
	digit
)

// direction is that of the first character that has one.
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

// logical puts what stands on a line from left to right into the order in which it is read. Lines without letters that run to the left stay as
// they are. In the others numbers and foreign words keep their own direction within the line's.
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

// isLeftward tells which way a line runs as a whole: as both its ends do, and else as most of it.
func isLeftward(ways []way, most bool) bool {
	strong := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w != leftward && w != rightward })
	if first, last := strong[0], strong[len(strong)-1]; first == last {
		return first == leftward
	}
	return most
}

// levelsOf tells for each item how deep it is in changes of direction: 0 and 2 run to the right, 1 to the left. What has no direction runs as its
// neighbours do when they agree, and else as the line; a space between numbers as the line, since they are two numbers.
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

// nextTo is the way of the nearest neighbour on that side that has one. Digits of one number are neighbours of the same.
func nextTo(ways []way, i, step int) way {
	own := ways[i]
	for i += step; i >= 0 && i < len(ways); i += step {
		if ways[i] != neutral && (own != digit || ways[i] != digit) {
			return ways[i]
		}
	}
	return neutral
}
