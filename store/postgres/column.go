package postgres

import (
	"database/sql/driver"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
)

// A column is an array parameter, written as the database's own array literal. Text means the same in every protocol mode
// and through database/sql.
type column struct{ text []byte }

// instant is how a time is written: microseconds are all the database keeps.
const instant = "2006-01-02T15:04:05.999999Z07:00"

func (c *column) next() {
	if len(c.text) == 0 {
		c.text = append(c.text, '{')
	} else {
		c.text = append(c.text, ',')
	}
}

func (c *column) add(word string) {
	c.next()
	c.text = append(c.text, word...)
}

func (c *column) null()                  { c.add("NULL") }
func (c *column) id(id holdfast.ID)      { c.add(id.String()) }
func (c *column) bool(b bool)            { c.add(strconv.FormatBool(b)) }
func (c *column) int(n int)              { c.next(); c.text = strconv.AppendInt(c.text, int64(n), 10) }
func (c *column) float(f float64)        { c.next(); c.text = strconv.AppendFloat(c.text, f, 'g', -1, 64) }
func (c *column) quoteBytes(text []byte) { c.quote(string(text)) }

func (c *column) quote(text string) {
	c.next()
	c.text = append(c.text, '"')
	for {
		special := strings.IndexAny(text, `"\`)
		if special < 0 {
			break
		}
		c.text = append(c.text, text[:special]...)
		c.text = append(c.text, '\\', text[special])
		text = text[special+1:]
	}
	c.text = append(c.text, text...)
	c.text = append(c.text, '"')
}

// some writes a text, or NULL when there is none.
func (c *column) textOrNull(text string) {
	if text == "" {
		c.null()
		return
	}
	c.quote(text)
}

// time writes an instant, or NULL for none.
func (c *column) time(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.next()
	c.text = append(c.text, '"')
	c.text = t.UTC().AppendFormat(c.text, instant)
	c.text = append(c.text, '"')
}

// micros writes an instant in microseconds since 1970, which are read faster, or NULL for none.
func (c *column) micros(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.int(int(t.UnixMicro()))
}

// span writes a duration in microseconds, or NULL for none.
func (c *column) duration(d time.Duration) {
	if d == 0 {
		c.null()
		return
	}
	c.int(int(d.Microseconds()))
}

// String is the whole literal.
func (c *column) String() string {
	if len(c.text) == 0 {
		return "{}"
	}
	return string(c.text) + "}"
}

// ids is an array parameter of ids. There are many of them where speed counts, so it is the one that travels in binary form
// where the protocol allows it.
type ids []holdfast.ID

// Dimensions is one, or none for no ids at all.
func (l ids) Dimensions() []pgtype.ArrayDimension {
	if l == nil {
		return []pgtype.ArrayDimension{}
	}
	return []pgtype.ArrayDimension{{Length: int32(len(l)), LowerBound: 1}}
}

// Index is one id.
func (l ids) Index(i int) any { return pgtype.UUID{Bytes: l[i], Valid: true} }

// IndexType is what the driver has to know to choose how to write them.
func (l ids) IndexType() any { return pgtype.UUID{} }

// Value is the literal, for the modes that know only text.
func (l ids) Value() (driver.Value, error) {
	var c column
	for _, id := range l {
		c.id(id)
	}
	return c.String(), nil
}

func textArray(list []string) string {
	var c column
	for _, text := range list {
		c.quote(text)
	}
	return c.String()
}

func timestamp(t time.Time) string { return t.UTC().Format(instant) }

// clean drops what the database cannot store as text. It was scrubbed long before; this is the last line.
func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// cleanMap is the JSON of a failure's context, or nothing.
func cleanMap(context map[string]string) string {
	if len(context) == 0 {
		return ""
	}
	cleaned := make(map[string]string, len(context))
	for key, value := range context {
		cleaned[cleanText(key)] = cleanText(value)
	}
	body, _ := json.Marshal(cleaned) // strings always marshal
	return string(body)
}

// micros is a duration as the statements take it.
func micros(d time.Duration) int64 { return d.Microseconds() }
