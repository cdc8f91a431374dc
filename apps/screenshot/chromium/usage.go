package chromium

import "github.com/holdfastdev/holdfast/apps/internal/child"

// Usage measures the browser with all its processes. ok is false on systems that cannot tell: there, browsers are replaced by count and age only.
func (p *Process) Usage() (u child.Usage, ok bool) { return child.UsageOf(p.cmd.Process.Pid) }
