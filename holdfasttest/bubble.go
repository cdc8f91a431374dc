package holdfasttest

import "testing/synctest"

// inBubble reports whether the caller runs in virtual time. Package synctest has no function for this question, but Wait panics outside of a bubble.
func inBubble() (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	synctest.Wait()
	return true
}
