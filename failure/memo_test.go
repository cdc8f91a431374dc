package failure

import (
	"strconv"
	"strings"
	"testing"
)

func TestAMemoComputesATextOnceAndDropsOldOnes(t *testing.T) {
	asked := map[string]int{}
	m := memo{of: func(text string) string { asked[text]++; return "<" + text + ">" }}
	often := "a frequent text"
	for i := range 10 * memoTexts {
		for _, text := range []string{often, strconv.Itoa(i), often} {
			if got := m.get(text); got != "<"+text+">" {
				t.Fatalf("%q became %q", text, got)
			}
		}
	}
	if asked[often] != 1 {
		t.Errorf("a text that never rested was worked out %d times", asked[often])
	}
	if len(m.new)+len(m.old) > 2*memoTexts {
		t.Errorf("it remembers %d texts", len(m.new)+len(m.old))
	}
	if m.get("0"); asked["0"] != 2 {
		t.Errorf("a text of long ago was worked out %d times, so it was never forgotten", asked["0"])
	}
}

func TestAMemoKeepsNoLongTextsAndNothingOfAPanic(t *testing.T) {
	calls := 0
	m := memo{of: func(text string) string {
		if calls++; calls == 1 {
			panic("once")
		}
		return text
	}}
	func() {
		defer func() { _ = recover() }()
		m.get("short")
	}()
	if m.get("short") != "short" || calls != 2 {
		t.Errorf("after a panic it was called %d times", calls)
	}
	long := strings.Repeat("x", memoBytes+1)
	if m.get(long); m.get(long) != long || calls != 4 || len(m.new) != 1 {
		t.Errorf("a long text: %d calls, %d kept", calls, len(m.new))
	}
}
