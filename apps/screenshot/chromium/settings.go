package chromium

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// writeSettings writes the settings of a profile that have no flag. It must be done before the browser starts.
func writeSettings(cfg Config, profile string) error {
	type object = map[string]any
	return errors.Join(
		os.MkdirAll(filepath.Join(profile, "Default"), 0o700),
		// Of the browser. No page may ask for a password: the browser would ask a person, and the page would wait. The proxy may.
		writeJSON(filepath.Join(profile, "Local State"), object{"auth": object{"schemes": "", "http_auth_allowed_for_origins": []string{cfg.Proxy}}}),
		// Of the user. The browser connects to nothing, such as its search engine, before it is asked to.
		writeJSON(filepath.Join(profile, "Default", "Preferences"), object{"net": object{"network_prediction_options": 2}}),
	)
}

func writeJSON(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}
