// Package execjob is the kind "exec": a job that runs a program, for which nobody writes a handler. A job can run only programs that the operator
// listed, by name; without a list there is no such kind.
//
//	{"kind": "exec", "args": {"program": "thumbnail", "args": ["--size", "200", "photo.png"], "stdin": "..."}}
//
// There is never a shell: arguments arrive as they were given, whatever is in them. A program that reads options should be listed with "--" at the end of
// its own arguments, so that a job's cannot be taken for options. It sees no more of the environment than was listed for it, and works in an empty
// directory that is deleted afterwards, unless it was given one.
//
// A program ends with its attempt. When its time is up, the job is cancelled or the worker stops, all of its process group is asked to end (SIGTERM), and
// killed a little later; what it started and left running is killed as well. On Linux that includes what moved to a session of its own: it is found by the
// variables HOLDFAST_JOB_ID and HOLDFAST_ATTEMPT. Elsewhere, and with an environment that was cleared, such a program gets away: give it to a service manager
// instead.
//
// On Linux, Register makes this process one whose environment and memory no other process of the same user can read (PR_SET_DUMPABLE), so that programs cannot
// read its secrets in /proc. It leaves no core dumps then. A worker that runs as root hides nothing from its programs, which are root too.
//
// # Limits
//
// Limits on a program (processor time, memory, open files, size of files) are set by the system, on Linux and macOS, before its first instruction: this
// process starts itself anew under another name, and that sets the limits and becomes the program. So main must begin with program.Main; Register refuses
// limits otherwise. macOS does not enforce the one on memory. On other systems there are no limits, and Register refuses them; there, what a program
// started is not killed with it either.
package execjob
