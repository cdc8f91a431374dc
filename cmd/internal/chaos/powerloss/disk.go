package main

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

const sector = 512

// A disk simulates which bytes are durable and which were only written. It starts empty.
type disk struct {
	now     map[string]*file // what processes see
	durable map[string]*file // what remains of the folder after a power cut
}

// A file is its durable bytes and the changes since, oldest first.
type file struct {
	synced []byte
	since  []change
}

// A change is a write, or a new length when data is nil.
type change struct {
	offset int64
	data   []byte
}

func newDisk() *disk { return &disk{now: map[string]*file{}, durable: map[string]*file{}} }

// open returns a file by its name. It creates the file if create is true.
func (d *disk) open(name string, create, truncate bool) *file {
	f := d.now[name]
	if f == nil {
		if !create {
			return nil
		}
		f = &file{}
		d.now[name] = f
	}
	if truncate {
		f.since = append(f.since, change{})
	}
	return f
}

// size is the size that a process sees.
func (f *file) size() int64 {
	n := int64(len(f.synced))
	for _, c := range f.since {
		n = c.length(n)
	}
	return n
}

func (c change) length(before int64) int64 {
	if c.data == nil {
		return c.offset
	}
	return max(before, c.offset+int64(len(c.data)))
}

// sync makes the first changes durable, and the name of the file.
func (d *disk) sync(f *file, changes int) {
	for _, c := range f.since[:changes] {
		f.synced = c.apply(f.synced)
	}
	f.since = slices.Clone(f.since[changes:])
	for name, at := range d.now {
		if at == f {
			d.durable[name] = f
		}
	}
}

// syncFolder makes names durable: of created, removed and renamed files.
func (d *disk) syncFolder() { d.durable = maps.Clone(d.now) }

func (c change) apply(to []byte) []byte {
	n := c.length(int64(len(to)))
	if grown := n - int64(len(to)); grown > 0 {
		to = append(to, make([]byte, grown)...)
	}
	to = to[:n]
	copy(to[min(c.offset, n):], c.data)
	return to
}

// cut writes into dir what a power cut might leave: everything that is durable, and a random choice of the other written sectors.
func (d *disk) cut(dir string, r *rand.Rand) error {
	through := []float64{0, 0.25, 0.5, 0.75, 1}[r.IntN(5)]
	names := maps.Clone(d.durable)
	for name := range names {
		if d.now[name] != names[name] && r.Float64() < through {
			delete(names, name)
		}
	}
	for name, f := range d.now {
		if names[name] == nil && r.Float64() < through {
			names[name] = f
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), names[name].torn(through, r), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) torn(through float64, r *rand.Rand) []byte {
	left := slices.Clone(f.synced)
	for _, c := range f.since {
		if c.data == nil {
			if r.Float64() < through {
				left = c.apply(left)
			}
			continue
		}
		for start := int64(0); start < int64(len(c.data)); {
			end := min(int64(len(c.data)), start+sector-(c.offset+start)%sector)
			if r.Float64() < through {
				left = change{offset: c.offset + start, data: c.data[start:end]}.apply(left)
			}
			start = end
		}
	}
	return left
}
