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

// A folder stores files below a path. Each call opens the path again, as an os.Root, which no link can leave. So an unmounted folder is an error, not an empty folder, and
// after it was mounted again no restart is needed.
type folder struct {
	path     string
	link     func(root *os.Root, from, to string) error // replaced by tests of file systems without links
	renaming sync.Mutex                                 // held while a file is published without links
	durable  sync.Map                                   // folders inside that are known to survive a power loss
}

func openFolder(where string) (Store, error) {
	if where == "" {
		return nil, errors.New("no storage for files is set: use a folder, or s3://bucket/prefix")
	}
	at, err := filepath.Abs(where)
	if err != nil {
		return nil, folderError("cannot find the folder for files", err)
	}
	if err := os.MkdirAll(at, 0o700); errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return nil, errors.New("the path for files is a file: use a folder")
	} else if err != nil {
		return nil, folderError("cannot create the folder for files", err)
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
	return root, folderError("cannot open the folder for files", err)
}

// pathOf returns the path of a file: in a subfolder named after the last two characters of its name. Ids that were created together begin alike, so the end distributes
// files evenly and no folder contains millions.
func pathOf(key string) string {
	stem, _, _ := strings.Cut(path.Base(visibleKey(key)), ".")
	return stem[max(0, len(stem)-2):] + "/" + key
}

func (f *folder) Put(ctx context.Context, key string, from io.Reader) (Info, error) {
	return f.put(ctx, key, from, false)
}

func (f *folder) put(ctx context.Context, key string, from io.Reader, replace bool) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	root, err := f.root(ctx)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(pathOf(key)); err == nil && !replace {
		return Info{}, ErrExists
	}
	if err := f.makeDir(root, path.Dir(pathOf(key))); err != nil {
		return Info{}, err
	}
	part := pathOf(partKey(key, strings.ToLower(rand.Text()[:16])))
	defer func() { _ = root.Remove(part) }() // after publish this removes the second link; after an error, the unfinished file
	size, err := write(ctx, root, part, from)
	if err != nil {
		return Info{}, err
	}
	if replace {
		err = folderError("cannot name a file", root.Rename(part, pathOf(key)))
	} else {
		err = f.publish(root, part, key)
	}
	if err != nil {
		return Info{}, err
	}
	if err := syncFolder(root, path.Dir(pathOf(key))); err != nil {
		_ = root.Remove(pathOf(key))
		return Info{}, folderError("cannot make a file durable", err)
	}
	made := time.Now()
	if info, err := root.Lstat(pathOf(key)); err == nil {
		made = info.ModTime()
	}
	return Info{Key: key, Size: size, MadeAt: made}, nil
}

// write writes everything to an unfinished file and makes it durable.
func write(ctx context.Context, root *os.Root, part string, from io.Reader) (int64, error) {
	file, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, folderError("cannot create a file", err)
	}
	defer func() { _ = file.Close() }()
	size, err := copyAll(ctx, file, from)
	if err != nil {
		return size, err
	}
	if err := cmp.Or(ctx.Err(), file.Sync(), file.Close()); err != nil {
		return size, folderError("cannot make a file durable", err)
	}
	return size, nil
}

// publish gives a finished file its name unless the name exists. A hard link does that in one step.
func (f *folder) publish(root *os.Root, part, key string) error {
	switch err := f.link(root, part, pathOf(key)); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return ErrExists
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.Errno(1)): // the last is returned by Windows for FAT
		return f.publishByRename(root, part, key)
	default:
		return folderError("cannot name a file", err)
	}
}

// staleReservation is the age from which a reservation counts as left by a killed process: a live process holds one for milliseconds.
const staleReservation = time.Minute

// publishByRename is for file systems without hard links. A rename would replace an existing file, so the caller first reserves the name with a second file, which only one
// process can create.
func (f *folder) publishByRename(root *os.Root, part, key string) error {
	f.renaming.Lock()
	defer f.renaming.Unlock()
	reserved := pathOf(partKey(key, "reserved"))
	file, err := root.OpenFile(reserved, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, err := root.Lstat(reserved); err == nil && time.Since(info.ModTime()) > staleReservation {
			_ = root.Remove(reserved)
		}
		return errors.New("another process is creating this file: try again")
	}
	if err != nil {
		return folderError("cannot name a file", err)
	}
	defer func() { _ = root.Remove(reserved) }()
	_ = file.Close() // it is empty
	if _, err := root.Lstat(pathOf(key)); err == nil {
		return ErrExists
	}
	return folderError("cannot name a file", root.Rename(part, pathOf(key)))
}

// makeDir creates a subfolder and makes it durable, before a file in it is reported as durable.
func (f *folder) makeDir(root *os.Root, dir string) error {
	if _, ok := f.durable.Load(dir); ok {
		if _, err := root.Stat(dir); err == nil {
			return nil
		}
	}
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return folderError("cannot create a file", err)
	}
	for above := dir; above != "."; {
		above = path.Dir(above)
		if err := syncFolder(root, above); err != nil {
			return folderError("cannot create a file", err)
		}
	}
	f.durable.Store(dir, true)
	return nil
}

// syncFolder makes the names in a folder durable, on systems that support it.
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

// stat finds only regular files: anything else was not created by this package.
func stat(root *os.Root, key string) (Info, error) {
	info, err := root.Lstat(pathOf(key))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !info.Mode().IsRegular():
		return Info{}, ErrNotFound
	case err != nil:
		return Info{}, folderError("cannot check a file", err)
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
	file, err := root.Open(pathOf(key))
	if errors.Is(err, fs.ErrNotExist) { // deleted since stat
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, folderError("cannot open a file", err)
	}
	return &File{ReadSeekCloser: &pathlessFile{file}, Info: info}, nil
}

// A pathlessFile is a file whose errors contain no path.
type pathlessFile struct{ file *os.File }

func (q *pathlessFile) Read(p []byte) (int, error) {
	n, err := q.file.Read(p)
	if err == io.EOF {
		return n, err
	}
	return n, folderError("cannot read a file", err)
}

func (q *pathlessFile) Seek(offset int64, whence int) (int64, error) {
	n, err := q.file.Seek(offset, whence)
	return n, folderError("cannot seek in a file", err)
}

func (q *pathlessFile) Close() error { return folderError("cannot close a file", q.file.Close()) }

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
	if err := root.Remove(pathOf(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return folderError("a file could not be deleted", err)
	}
	return folderError("a file could not be deleted for good", syncFolder(root, path.Dir(pathOf(key))))
}

func (f *folder) Older(ctx context.Context, than time.Duration, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if after != "" {
			if err := checkListed(after); err != nil {
				yield(Info{}, fmt.Errorf("a list cannot begin there: %w", err))
				return
			}
			after = pathOf(after)
		}
		root, err := f.root(ctx)
		if err != nil {
			yield(Info{}, err)
			return
		}
		defer func() { _ = root.Close() }()
		w := walk{ctx: ctx, root: root, before: time.Now().Add(-than), after: after, yield: yield}
		_ = fs.WalkDir(root.FS(), ".", w.step) // its errors were yielded
	}
}

// A walk lists the files of a folder in the order of their names.
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
		if !w.yield(Info{}, folderError("cannot list files", err)) || w.ctx.Err() != nil {
			return fs.SkipAll
		}
		return nil
	case name == ".":
		return nil
	case entry.IsDir():
		return w.enter(name)
	}
	_, key, inside := strings.Cut(name, "/")
	if !inside || checkListed(key) != nil || pathOf(key) != name || w.after != "" && compareKeys(name, w.after) <= 0 {
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

// enter skips folders of other programs, such as lost+found, and those before the first key.
func (w *walk) enter(dir string) error {
	ours := !strings.ContainsFunc(path.Base(dir), isInvalid)
	if ours && (w.after == "" || strings.HasPrefix(w.after, dir+"/") || compareKeys(dir, w.after) > 0) {
		return nil
	}
	return fs.SkipDir
}
