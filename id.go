package holdfast

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// An ID identifies a job, a batch, a group or a redrive. It is a UUID of version 7: unique without coordination, and ordered by
// creation time. IDs are never reused. The zero ID identifies nothing.
type ID [16]byte

// lastMoment is the time in the last id that this process made. It keeps ids in strict order even if the clock stops or
// steps back.
var lastMoment atomic.Int64

// NewID returns an id that sorts after every id that this process made before. It is safe for concurrent use.
func NewID() ID {
	// The first 48 bits are milliseconds, the next 12 are the fraction of a millisecond in steps of 1/4096.
	moment := time.Now().UnixMilli()<<12 | time.Now().UnixMicro()%1000*4096/1000
	for {
		last := lastMoment.Load()
		moment = max(moment, last+1)
		if lastMoment.CompareAndSwap(last, moment) {
			break
		}
	}
	var id ID
	_, _ = rand.Read(id[8:]) // crypto/rand never fails: it ends the program instead
	binary.BigEndian.PutUint64(id[:8], uint64(moment>>12)<<16|0x7000|uint64(moment&0xfff))
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID parses the canonical form: 36 characters with hyphens. The error wraps ErrInvalid.
func ParseID(s string) (ID, error) { return parseID(s) }

func parseID[T string | []byte](s T) (id ID, err error) {
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		at, ok := 0, true
		for i := 0; i < len(s); i += 2 {
			if i == 8 || i == 13 || i == 18 || i == 23 {
				i++
			}
			high, low := hexDigit[s[i]], hexDigit[s[i+1]]
			ok = ok && high|low < 16
			id[at], at = high<<4|low, at+1
		}
		if ok {
			return id, nil
		}
	}
	return ID{}, &Error{Err: ErrInvalid, Message: fmt.Sprintf("%.40q is not a job id: expected the form 01890a5d-ac96-774b-bcce-b302099a8057", s)}
}

// hexDigit has the value of each hexadecimal digit, and 255 for every other byte.
var hexDigit = func() (value [256]byte) {
	for i := range value {
		value[i] = 255
	}
	for i, c := range "0123456789abcdef" {
		value[c], value[strings.ToUpper(string(c))[0]] = byte(i), byte(i)
	}
	return value
}()

// String returns the canonical form.
func (id ID) String() string {
	var s [36]byte
	hex.Encode(s[:8], id[:4])
	hex.Encode(s[9:13], id[4:6])
	hex.Encode(s[14:18], id[6:8])
	hex.Encode(s[19:23], id[8:10])
	hex.Encode(s[24:], id[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// IsZero reports whether the id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements encoding.TextMarshaler with the canonical form, so ids are readable in JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It reads the canonical form.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = parseID(text)
	return err
}

// Value implements driver.Valuer with the canonical form, so that an ID can be an argument of a statement in package database/sql.
func (id ID) Value() (driver.Value, error) { return id.String(), nil }

// Scan implements sql.Scanner. It reads the canonical form, as columns of type text and uuid have it, 16 bytes, as columns of the store have it, and NULL as the
// zero ID.
func (id *ID) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		*id = ID{}
	case [16]byte:
		*id = v
	case []byte:
		if len(v) == len(id) {
			copy(id[:], v)
			return nil
		}
		*id, err = ParseID(string(v))
	case string:
		*id, err = ParseID(v)
	default:
		err = &Error{Err: ErrInvalid, Message: fmt.Sprintf("a value of type %T is not a job id: expected a text, 16 bytes or NULL", value)}
	}
	return err
}
