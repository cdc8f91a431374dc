package sqltext

import "testing"

func TestAStepSaysInItsHeadWhatItNeeds(t *testing.T) {
	for text, want := range map[string]int{
		"CREATE TABLE x (n int);":                                       7,
		"-- Adds a table.\nCREATE TABLE x (n int);":                     7,
		"-- needs: 5\nCREATE TABLE x (n int);":                          5,
		"-- Adds a table.\n-- needs: 6\n\nCREATE TABLE x (n int);":      6,
		"-- needs: 7\nCREATE TABLE x (n int);":                          7,
		"CREATE TABLE x (n int);\n-- needs: 5\n":                        7,
		"-- needs: 8\nCREATE TABLE x (n int);":                          0,
		"-- needs: five\nCREATE TABLE x (n int);":                       0,
		"-- needs: 0\nCREATE TABLE x (n int);":                          0,
		"-- needs:\nCREATE TABLE x (n int);":                            0,
		"-- Programs that know version 5 can use it.\n-- needs:5\nDROP": 5,
	} {
		got, err := readNeeds(text, 7)
		if (err != nil) != (want == 0) || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}
