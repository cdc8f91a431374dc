// Package execjob is the kind "exec": a job that runs a program, without a handler in Go. A job can run only programs that the operator has listed, by name; without a
// list the kind does not exist.
//
//	{"kind": "exec", "args": {"program": "thumbnail", "args": ["--size", "200", "photo.png"], "stdin": "..."}}
//
// No shell is involved: the program receives its arguments exactly as they were given. A program that reads options should be listed with "--" at the end of its own
// arguments, so that arguments of a job cannot be taken for options. It sees only the environment variables that are listed for it, and runs in an empty directory that
// is deleted afterwards, unless another one is configured.
//
// A program ends with its attempt. When its time limit has passed, the job is cancelled or the worker stops, all processes of its group receive SIGTERM, and SIGKILL a
// little later. Processes that it started and left running are killed as well. On Linux this includes processes in a session of their own: they are found by the
// variables HOLDFAST_JOB_ID and HOLDFAST_ATTEMPT. On other systems, or if it has cleared its environment, such a process continues: run it under a service manager
// instead.
//
// On Linux, Register prevents other processes of the same user from reading the environment and memory of this process (PR_SET_DUMPABLE), so that programs cannot read
// its secrets in /proc. Core dumps are disabled then. A worker that runs as root hides nothing from its programs, which are root too.
//
// # Limits
//
// Limits of a program (processor time, memory, open files, size of files) are enforced by the operating system, on Linux and macOS, from its first instruction on: this
// process starts itself under another name, sets the limits and executes the program. So main must begin with execjob.Main; otherwise Register refuses limits. macOS
// does not enforce the memory limit. On other systems limits are not available and Register refuses them; there, processes that a program started are not killed with
// it either.
package execjob
