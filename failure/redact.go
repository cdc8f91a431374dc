package failure

import (
	"bytes"
	"encoding/json"
)

// Redact hides credentials in a JSON value: in strings, the parts that look like a credential, and the whole value of a
// member whose name looks like a secret, see [SecretName]. File paths stay, unlike with [Scrub]. A value that is not JSON
// is hidden completely.
func Redact(value json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber() // keeps numbers as they are written
	var decoded any
	if err := d.Decode(&decoded); err != nil {
		return json.RawMessage(`"` + hidden + `"`)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(redacted(decoded)); err != nil {
		return json.RawMessage(`"` + hidden + `"`)
	}
	return bytes.TrimSpace(out.Bytes())
}

func redacted(value any) any {
	switch v := value.(type) {
	case string:
		return hideCredentials(v)
	case []any:
		for i := range v {
			v[i] = redacted(v[i])
		}
	case map[string]any:
		for name := range v {
			if SecretName(name) {
				v[name] = hidden
			} else {
				v[name] = redacted(v[name])
			}
		}
	}
	return value
}
