package child

import (
	"bytes"
	"os"
	"strconv"
)

// UsageOf measures a process and all processes that it started. ok is false on systems that cannot tell.
func UsageOf(leader int) (u Usage, ok bool) {
	var shared int64
	for _, pid := range membersOf(leader) {
		resident, part, found := memoryOf(pid)
		if !found {
			continue
		}
		u.Processes++
		u.Memory += resident - part
		shared = max(shared, part)
	}
	u.Memory += shared
	return u, u.Processes > 0
}

// memoryOf returns the resident memory of a process and how much of it may be shared with others.
func memoryOf(pid int) (resident, shared int64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 3 {
		return 0, 0, false
	}
	page := int64(os.Getpagesize())
	resident, _ = strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ = strconv.ParseInt(string(fields[2]), 10, 64)
	return resident * page, shared * page, true
}

// A processState is what the system says about a process.
type processState struct {
	parent, group int
	zombie        bool // it has ended, and its parent has not waited for it
}

// processes returns all processes of the system.
func processes() map[int]processState {
	all := map[int]processState{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if state, ok := stateOf(pid); ok {
			all[pid] = state
		}
	}
	return all
}

// membersOf returns a process that runs, those of its group, and those that they started in other groups.
func membersOf(leader int) (members []int) {
	all := processes()
	in := map[int]bool{}
	for found := true; found; {
		found = false
		for pid, state := range all {
			if !in[pid] && (pid == leader || state.group == leader || in[state.parent]) {
				in[pid], found = true, true
				members = append(members, pid)
			}
		}
	}
	return members
}

func stateOf(pid int) (state processState, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return state, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name before may contain anything
	if len(fields) < 3 {
		return state, false
	}
	parent, err1 := strconv.Atoi(string(fields[1]))
	group, err2 := strconv.Atoi(string(fields[2]))
	return processState{parent, group, string(fields[0]) == "Z"}, err1 == nil && err2 == nil
}
