package pages

// percentOf returns n of total in whole percent; 100 only if nothing is missing.
func percentOf(n, total int) int {
	if total <= 0 {
		return 0
	}
	return n * 100 / total
}
