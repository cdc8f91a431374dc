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

// A column is an array parameter in PostgreSQL's array literal form. Text has the same meaning in every protocol mode and through database/sql.
type column struct{ text []byte }

// instant is the layout of a timestamp parameter. The database keeps microseconds.
const instant = "2006-01-02T15:04:05.999999Z07:00"

// next adds the separator before an element.
func (c *column) next() {
	if len(c.text) == 0 {
		c.text = append(c.text, '{')
	} else {
		c.text = append(c.text, ',')
	}
}

// add appends an element that needs no quotes.
func (c *column) add(word string) {
	c.next()
	c.text = append(c.text, word...)
}

func (c *column) null()             { c.add("NULL") }
func (c *column) id(id holdfast.ID) { c.add(id.String()) }
func (c *column) idOrNull(id holdfast.ID) {
	if id.IsZero() {
		c.null()
	} else {
		c.id(id)
	}
}
func (c *column) bool(b bool)            { c.add(strconv.FormatBool(b)) }
func (c *column) int(n int)              { c.next(); c.text = strconv.AppendInt(c.text, int64(n), 10) }
func (c *column) float(f float64)        { c.next(); c.text = strconv.AppendFloat(c.text, f, 'g', -1, 64) }
func (c *column) quoteBytes(text []byte) { c.quote(string(text)) }

// quote appends a text in quotes, with escapes.
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

// textOrNull appends a text, or NULL for an empty one.
func (c *column) textOrNull(text string) {
	if text == "" {
		c.null()
		return
	}
	c.quote(text)
}

// time appends a timestamp, or NULL for the zero time.
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

// micros appends a time as microseconds since 1970, which the database parses faster than a timestamp, or NULL for the zero time.
func (c *column) micros(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.int(int(t.UnixMicro()))
}

// duration appends a duration in microseconds, or NULL for zero.
func (c *column) duration(d time.Duration) {
	if d == 0 {
		c.null()
		return
	}
	c.int(int(d.Microseconds()))
}

// String returns the array literal.
func (c *column) String() string {
	if len(c.text) == 0 {
		return "{}"
	}
	return string(c.text) + "}"
}

// ids is an array parameter of ids. It is used with many ids on hot paths, so it is sent in binary form where the protocol mode allows that.
type ids []holdfast.ID

// Dimensions implements pgtype.ArrayGetter: one dimension, or none for nil.
func (l ids) Dimensions() []pgtype.ArrayDimension {
	if l == nil {
		return []pgtype.ArrayDimension{}
	}
	return []pgtype.ArrayDimension{{Length: int32(len(l)), LowerBound: 1}}
}

// Index implements pgtype.ArrayGetter.
func (l ids) Index(i int) any { return pgtype.UUID{Bytes: l[i], Valid: true} }

// IndexType implements pgtype.ArrayGetter: the driver chooses the encoding by it.
func (l ids) IndexType() any { return pgtype.UUID{} }

// Value returns the text literal, for protocol modes without binary parameters.
func (l ids) Value() (driver.Value, error) {
	var c column
	for _, id := range l {
		c.id(id)
	}
	return c.String(), nil
}

// textArray returns an array literal of texts.
func textArray(list []string) string {
	var c column
	for _, text := range list {
		c.quote(text)
	}
	return c.String()
}

// intArray returns an array literal of integers.
func intArray(list []int32) string {
	var c column
	for _, n := range list {
		c.int(int(n))
	}
	return c.String()
}

// timestamp formats a time as a parameter.
func timestamp(t time.Time) string { return t.UTC().Format(instant) }

// cleanText removes what the database cannot store as text: invalid UTF-8 and NUL bytes. Callers have cleaned their texts already; this is the last
// safeguard.
func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// cleanMap returns the JSON of a failure's context, or an empty text for none.
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

// micros returns a duration in microseconds, as the statements take it.
func micros(d time.Duration) int64 { return d.Microseconds() }
