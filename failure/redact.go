package failure

import (
	"bytes"
	"encoding/json"
)

// Redact hides credentials in a JSON value: texts in which something looks like one, and everything in a member that is named like a secret, see [SecretName]. Paths
// of files stay, unlike in what [Scrub] leaves. A value that is no JSON is hidden whole.
func Redact(value json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber() // numbers stay to the letter
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
