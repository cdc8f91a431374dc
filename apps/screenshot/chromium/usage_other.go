//go:build !linux

package chromium

// A Usage is what a browser uses, with all its processes.
type Usage struct {
	Processes int
	Memory    int64 // bytes of main memory; memory that processes share counts once
}

// Usage measures the browser. ok is false on systems that cannot tell, such as this one: there, browsers are replaced by count and age only.
func (p *Process) Usage() (u Usage, ok bool) { return Usage{}, false }
