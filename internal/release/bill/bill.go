// Package bill reads what was compiled into a program, and writes it as a bill of materials.
package bill

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// library is the path of the root module, where the source of the program is.
const library = "github.com/holdfastdev/holdfast"

// A Bill is the bill of materials of a program: what the go command compiled into it, as the program itself says.
type Bill struct {
	Version string          // of the program
	Commit  string          // that it was built of; empty: unknown
	Go      string          // the version of Go that built it
	Modules []*debug.Module // without the main module, in the order of their paths

	sum      [sha256.Size]byte
	modified bool
}

// Read reads a program.
func Read(program string) (*Bill, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	b := &Bill{Version: info.Main.Version, Go: info.GoVersion, Modules: slices.Clone(info.Deps), sum: sha256.Sum256(data)}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	slices.SortFunc(b.Modules, func(x, y *debug.Module) int { return strings.Compare(x.Path, y.Path) })
	return b, nil
}

// Check refuses a program that is not that of a release: it has another version, is not built of a commit, or contains modules that are not versions.
func (b *Bill) Check(version string) error {
	if b.Version != version || b.Commit == "" || b.modified {
		return fmt.Errorf("the program says that it is version %q of commit %q, modified: %v; the program of the release is version %q of an unmodified commit", b.Version, b.Commit, b.modified, version)
	}
	for _, m := range b.Modules {
		if m.Replace != nil || m.Sum == "" {
			return fmt.Errorf("the program contains %s from a folder, and a release contains only modules with a version and a checksum: remove the replace line in cmd/go.mod ('make tag' does)", m.Path)
		}
	}
	return nil
}

// The types of CycloneDX 1.6 that a bill uses.
type (
	cdxDocument struct {
		Format       string          `json:"bomFormat"`
		Spec         string          `json:"specVersion"`
		Serial       string          `json:"serialNumber"`
		Version      int             `json:"version"`
		Metadata     cdxMetadata     `json:"metadata"`
		Components   []cdxComponent  `json:"components"`
		Dependencies []cdxDependency `json:"dependencies"`
	}
	cdxMetadata struct {
		Timestamp string       `json:"timestamp"`
		Component cdxComponent `json:"component"`
	}
	cdxComponent struct {
		Ref        string         `json:"bom-ref"`
		Type       string         `json:"type"`
		Name       string         `json:"name"`
		Version    string         `json:"version"`
		Hashes     []cdxHash      `json:"hashes,omitempty"`
		Licenses   []cdxLicense   `json:"licenses,omitempty"`
		PURL       string         `json:"purl"`
		References []cdxReference `json:"externalReferences,omitempty"`
	}
	cdxHash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	cdxLicense struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	cdxReference struct {
		Type    string `json:"type"`
		URL     string `json:"url"`
		Comment string `json:"comment,omitempty"`
	}
	cdxDependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	}
)

// CycloneDX returns the bill in the format CycloneDX 1.6. The hash of a module is its checksum in go.sum (h1, a SHA-256 over its files); that of the command is
// the SHA-256 of the program. The serial number is made of that, so the same program has the same bill.
func (b *Bill) CycloneDX(at time.Time) ([]byte, error) {
	name := purl(library+"/cmd", b.Version) + "#holdfast"
	command := cdxComponent{Ref: name, Type: "application", Name: "holdfast", Version: b.Version, PURL: name,
		Hashes:     []cdxHash{{"SHA-256", hex.EncodeToString(b.sum[:])}},
		References: []cdxReference{{Type: "vcs", URL: "https://" + library}},
	}
	if b.Commit != "" {
		command.References[0].Comment = "commit " + b.Commit
	}
	command.Licenses = make([]cdxLicense, 1)
	command.Licenses[0].License.ID = "Apache-2.0"
	standard := strings.TrimPrefix(b.Go, "go")
	list := []cdxComponent{{Ref: purl("std", standard), Type: "library", Name: "std", Version: standard, PURL: purl("std", standard)}}
	for _, m := range b.Modules {
		one := cdxComponent{Ref: purl(m.Path, m.Version), Type: "library", Name: m.Path, Version: m.Version, PURL: purl(m.Path, m.Version)}
		if m.Sum != "" {
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
			if err != nil {
				return nil, fmt.Errorf("the checksum of %s: %w", m.Path, err)
			}
			one.Hashes = []cdxHash{{"SHA-256", hex.EncodeToString(sum)}}
		}
		list = append(list, one)
	}
	all := cdxDependency{Ref: name}
	for _, one := range list {
		all.DependsOn = append(all.DependsOn, one.Ref)
	}
	text, err := json.MarshalIndent(cdxDocument{Format: "CycloneDX", Spec: "1.6", Serial: serial(b.sum), Version: 1,
		Metadata: cdxMetadata{at.Format(time.RFC3339), command}, Components: list, Dependencies: []cdxDependency{all}}, "", "  ")
	return append(text, '\n'), err
}

// purl returns the package URL of a version of a Go module.
func purl(path, version string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + url.QueryEscape(version)
}

// serial returns a UUID of version 8, of these bytes.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
