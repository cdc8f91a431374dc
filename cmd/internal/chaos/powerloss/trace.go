package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// A call is one line of the log: the beginning of a system call, its return, or both.
type call struct {
	thread          string
	name            string
	arguments       []string
	begins, returns bool
	result          int64
}

// calls reads a log of strace -f -xx and calls each for every line, in order.
func calls(log io.Reader, each func(call) error) error {
	begun := map[string]call{} // by thread
	scanner := bufio.NewScanner(log)
	scanner.Buffer(make([]byte, 1<<20), 1<<28)
	for scanner.Scan() {
		thread, rest, _ := strings.Cut(scanner.Text(), " ")
		rest = strings.TrimLeft(rest, " ")
		if strings.HasPrefix(rest, "+++") || strings.HasPrefix(rest, "---") {
			continue
		}
		var c call
		if strings.HasPrefix(rest, "<... ") {
			c = begun[thread]
			c.begins, c.returns = false, true
		} else {
			var err error
			if c, err = parse(rest); err != nil {
				return err
			}
		}
		c.thread = thread
		if c.returns {
			c.result = resultOf(rest)
		} else {
			begun[thread] = c
		}
		if err := each(c); err != nil {
			return err
		}
	}
	return scanner.Err()
}

func parse(text string) (call, error) {
	name, rest, found := strings.Cut(text, "(")
	if !found {
		return call{}, fmt.Errorf("cannot parse a line of the log: %.80q", text)
	}
	c := call{name: name, begins: true, returns: !strings.HasSuffix(rest, "<unfinished ...>")}
	end := strings.LastIndex(rest, ")")
	if !c.returns {
		end = strings.LastIndex(rest, " <unfinished")
	}
	if end < 0 {
		return call{}, fmt.Errorf("a line of the log is incomplete: %.80q", text)
	}
	c.arguments = strings.Split(strings.TrimSpace(rest[:end]), ", ")
	return c, nil
}

func resultOf(text string) int64 {
	at := strings.LastIndex(text, " = ")
	if at < 0 {
		return -1
	}
	number, _, _ := strings.Cut(text[at+3:], " ")
	n, err := strconv.ParseInt(number, 0, 64)
	if err != nil {
		return -1
	}
	return n
}

// text decodes a string argument: with -xx every byte is \x and two hex digits.
func (c call) text(i int) []byte {
	if i >= len(c.arguments) {
		return nil
	}
	digits := strings.ReplaceAll(strings.Trim(c.arguments[i], `"`), `\x`, "")
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return bytes
}

func (c call) number(i int) int64 {
	if i >= len(c.arguments) {
		return -1
	}
	n, err := strconv.ParseInt(c.arguments[i], 0, 64)
	if err != nil {
		return -1
	}
	return n
}

// A replay turns calls into changes of a disk, for the files of one folder.
type replay struct {
	folder string
	disk   *disk
	files  map[int64]*file // by descriptor
	names  map[int64]string
	syncs  map[string]int // number of changes that a sync in progress covers, by thread

	writes, synced int
	acks           []byte // acknowledgements so far
}

func newReplay(folder string) *replay {
	return &replay{folder: folder, disk: newDisk(), files: map[int64]*file{}, names: map[int64]string{}, syncs: map[string]int{}}
}

// follow applies one call. A write counts from its beginning. A sync counts at its return, for the writes before its beginning. A descriptor is free from the
// beginning of its close.
func (r *replay) follow(c call) {
	switch c.name {
	case "open", "openat", "creat":
		if c.returns && c.result >= 0 {
			r.open(c)
		}
	case "close":
		if c.begins {
			delete(r.files, c.number(0))
			delete(r.names, c.number(0))
		}
	case "write", "pwrite64", "ftruncate":
		if f := r.files[c.number(0)]; c.begins && f != nil {
			r.change(f, c)
		}
	case "fsync", "fdatasync":
		r.sync(c)
	case "unlink", "unlinkat":
		if c.returns && c.result == 0 {
			delete(r.disk.now, string(c.path()))
		}
	}
}

func (c call) path() []byte {
	if strings.HasSuffix(c.name, "at") {
		return c.text(1)
	}
	return c.text(0)
}

func (r *replay) open(c call) {
	name := string(c.path())
	if filepath.Dir(name) != r.folder && name != r.folder {
		return
	}
	r.names[c.result] = name
	if name == r.folder || strings.HasSuffix(name, "-shm") {
		return // the folder itself, and the file that SQLite recreates after every crash
	}
	flags := strings.Join(c.arguments, " ")
	if f := r.disk.open(name, strings.Contains(flags, "O_CREAT"), strings.Contains(flags, "O_TRUNC")); f != nil {
		r.files[c.result] = f
	}
}

func (r *replay) change(f *file, c call) {
	r.writes++
	if filepath.Base(r.names[c.number(0)]) == acknowledgement {
		r.acks = append(r.acks, c.text(1)...)
		return
	}
	switch c.name {
	case "ftruncate":
		f.since = append(f.since, change{offset: c.number(1)})
	case "pwrite64":
		f.since = append(f.since, change{offset: c.number(3), data: c.text(1)})
	case "write":
		f.since = append(f.since, change{offset: f.size(), data: c.text(1)})
	}
}

func (r *replay) sync(c call) {
	descriptor := c.number(0)
	f := r.files[descriptor]
	if c.begins && f != nil {
		r.syncs[c.thread] = len(f.since)
	}
	if !c.returns || c.result != 0 {
		return
	}
	r.synced++
	switch {
	case f != nil:
		r.disk.sync(f, r.syncs[c.thread])
	case r.names[descriptor] == r.folder:
		r.disk.syncFolder()
	}
}
