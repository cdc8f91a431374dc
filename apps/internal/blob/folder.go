package blob

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A folder keeps files below a path. It is opened anew for each call, as a root that nothing leads out of: so one that was unmounted is an error and not
// an empty one, and one that came back needs no restart.
type folder struct {
	path string
	link func(root *os.Root, from, to string) error // a field so that a test can take links away
	solo sync.Mutex                                 // held by who makes a file where there are no links
	kept sync.Map                                   // folders inside that are known to survive a power cut
}

func openFolder(where string) (Store, error) {
	if where == "" {
		return nil, errors.New("files need a place: give a folder, or s3://bucket/prefix")
	}
	at, err := filepath.Abs(where)
	if err != nil {
		return nil, trouble("the folder for files could not be found", err)
	}
	if err := os.MkdirAll(at, 0o700); errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return nil, errors.New("the place for files is a file itself: give a folder")
	} else if err != nil {
		return nil, trouble("the folder for files could not be made", err)
	}
	f := &folder{path: at, link: (*os.Root).Link}
	root, err := f.root(context.Background())
	if err != nil {
		return nil, err
	}
	return f, root.Close()
}

func (f *folder) root(ctx context.Context) (*os.Root, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(f.path)
	return root, trouble("the folder for files could not be opened", err)
}

// at is where a file lies: in a folder named after the end of its name, since ids that were made together begin alike. So no folder comes to hold
// millions.
func at(key string) string {
	stem, _, _ := strings.Cut(path.Base(shown(key)), ".")
	return stem[max(0, len(stem)-2):] + "/" + key
}

func (f *folder) Put(ctx context.Context, key string, from io.Reader) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	root, err := f.root(ctx)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(at(key)); err == nil {
		return Info{}, ErrExists
	}
	if err := f.room(root, path.Dir(at(key))); err != nil {
		return Info{}, err
	}
	part := at(partKey(key, strings.ToLower(rand.Text()[:16])))
	defer func() { _ = root.Remove(part) }() // it has its name by now, or is not wanted
	size, err := write(ctx, root, part, from)
	if err != nil {
		return Info{}, err
	}
	if err := f.publish(root, part, key); err != nil {
		return Info{}, err
	}
	if err := syncFolder(root, path.Dir(at(key))); err != nil {
		_ = root.Remove(at(key))
		return Info{}, trouble("a file could not be made durable", err)
	}
	made := time.Now()
	if info, err := root.Lstat(at(key)); err == nil {
		made = info.ModTime()
	}
	return Info{Key: key, Size: size, MadeAt: made}, nil
}

// write makes a part, durably, of all that from holds.
func write(ctx context.Context, root *os.Root, part string, from io.Reader) (int64, error) {
	file, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, trouble("a file could not be begun", err)
	}
	defer func() { _ = file.Close() }()
	size, err := pour(ctx, file, from)
	if err != nil {
		return size, err
	}
	if err := cmp.Or(ctx.Err(), file.Sync(), file.Close()); err != nil {
		return size, trouble("a file could not be made durable", err)
	}
	return size, nil
}

// publish gives a part its name, unless a file has it. A second link does that in one step.
func (f *folder) publish(root *os.Root, part, key string) error {
	switch err := f.link(root, part, at(key)); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return ErrExists
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.Errno(1)): // the last is Windows' about FAT
		return f.publishAlone(root, part, key)
	default:
		return trouble("a file could not be named", err)
	}
}

// stale is how old a reservation must be to be nobody's: whoever makes one is done with it within the blink of an eye.
const stale = time.Minute

// publishAlone is for file systems without links. There a new name can only be had by a rename, which would replace, so who renames reserves the
// name first.
func (f *folder) publishAlone(root *os.Root, part, key string) error {
	f.solo.Lock()
	defer f.solo.Unlock()
	reserved := at(partKey(key, "reserved"))
	file, err := root.OpenFile(reserved, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := root.Lstat(reserved); err == nil && time.Since(info.ModTime()) > stale {
			_ = root.Remove(reserved)
		}
		return errors.New("somebody else is making this very file: try again")
	}
	if err != nil {
		return trouble("a file could not be named", err)
	}
	defer func() { _ = root.Remove(reserved) }()
	_ = file.Close() // it is empty
	if _, err := root.Lstat(at(key)); err == nil {
		return ErrExists
	}
	return trouble("a file could not be named", root.Rename(part, at(key)))
}

// room makes a folder inside, and sees to it that it survives a power cut before a file in it is said to.
func (f *folder) room(root *os.Root, dir string) error {
	if _, kept := f.kept.Load(dir); kept {
		if _, err := root.Stat(dir); err == nil {
			return nil
		}
	}
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return trouble("a file could not be begun", err)
	}
	for above := dir; above != "."; {
		above = path.Dir(above)
		if err := syncFolder(root, above); err != nil {
			return trouble("a file could not be begun", err)
		}
	}
	f.kept.Store(dir, true)
	return nil
}

// syncFolder makes names durable, where the system has that.
func syncFolder(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

func (f *folder) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	root, err := f.root(ctx)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = root.Close() }()
	return stat(root, key)
}

// stat knows regular files only: whatever else lies there is not ours.
func stat(root *os.Root, key string) (Info, error) {
	info, err := root.Lstat(at(key))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !info.Mode().IsRegular():
		return Info{}, ErrNotFound
	case err != nil:
		return Info{}, trouble("a file could not be looked at", err)
	}
	return Info{Key: key, Size: info.Size(), MadeAt: info.ModTime(), Part: isPart(key)}, nil
}

func (f *folder) Open(ctx context.Context, key string) (*File, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	root, err := f.root(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	info, err := stat(root, key)
	if err != nil {
		return nil, err
	}
	file, err := root.Open(at(key))
	if errors.Is(err, fs.ErrNotExist) { // deleted this very moment
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, trouble("a file could not be opened", err)
	}
	return &File{ReadSeekCloser: &quiet{file}, Info: info}, nil
}

// quiet is a file whose errors name no path.
type quiet struct{ file *os.File }

func (q *quiet) Read(p []byte) (int, error) {
	n, err := q.file.Read(p)
	if err == io.EOF {
		return n, err
	}
	return n, trouble("a file could not be read", err)
}

func (q *quiet) Seek(offset int64, whence int) (int64, error) {
	n, err := q.file.Seek(offset, whence)
	return n, trouble("a place in a file could not be found", err)
}

func (q *quiet) Close() error { return trouble("a file could not be closed", q.file.Close()) }

func (f *folder) Delete(ctx context.Context, key string) error {
	if err := checkListed(key); err != nil {
		return err
	}
	root, err := f.root(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if _, err := stat(root, key); errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	if err := root.Remove(at(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return trouble("a file could not be deleted", err)
	}
	return trouble("a file could not be deleted for good", syncFolder(root, path.Dir(at(key))))
}

func (f *folder) Older(ctx context.Context, than time.Duration, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if after != "" {
			if err := checkListed(after); err != nil {
				yield(Info{}, fmt.Errorf("a list cannot begin there: %w", err))
				return
			}
			after = at(after)
		}
		root, err := f.root(ctx)
		if err != nil {
			yield(Info{}, err)
			return
		}
		defer func() { _ = root.Close() }()
		w := walk{ctx: ctx, root: root, before: time.Now().Add(-than), after: after, yield: yield}
		_ = fs.WalkDir(root.FS(), ".", w.step) // all that it could say was yielded
	}
}

// A walk goes through a folder, in the order of names.
type walk struct {
	ctx    context.Context
	root   *os.Root
	before time.Time
	after  string
	yield  func(Info, error) bool
}

func (w *walk) step(name string, entry fs.DirEntry, err error) error {
	err = cmp.Or(w.ctx.Err(), err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		if !w.yield(Info{}, trouble("files could not be listed", err)) || w.ctx.Err() != nil {
			return fs.SkipAll
		}
		return nil
	case name == ".":
		return nil
	case entry.IsDir():
		return w.enter(name)
	}
	_, key, inside := strings.Cut(name, "/")
	if !inside || checkListed(key) != nil || at(key) != name || w.after != "" && compareKeys(name, w.after) <= 0 {
		return nil
	}
	info, err := stat(w.root, key)
	if errors.Is(err, ErrNotFound) || err == nil && !info.MadeAt.Before(w.before) {
		return nil
	}
	if !w.yield(info, err) {
		return fs.SkipAll
	}
	return nil
}

// enter leaves out folders that are not ours, such as lost+found, and those that come before the beginning.
func (w *walk) enter(dir string) error {
	ours := !strings.ContainsFunc(path.Base(dir), odd)
	if ours && (w.after == "" || strings.HasPrefix(w.after, dir+"/") || compareKeys(dir, w.after) > 0) {
		return nil
	}
	return fs.SkipDir
}
