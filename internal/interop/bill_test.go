package interop

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfastdev/holdfast/internal/release/bill"
)

func TestABillOfMaterialsFollowsTheSchemaOfCycloneDX(t *testing.T) {
	program := filepath.Join(t.TempDir(), "welcome")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/holdfastdev/holdfast/examples/welcome").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read, err := bill.Read(program)
	ok(t, err)
	text, err := read.CycloneDX(time.Unix(1_800_000_000, 0).UTC())
	ok(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	ok(t, err)
	if err := schemaOfCycloneDX(t).Validate(document); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}

	var decoded cyclonedx.BOM
	ok(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&decoded))
	for _, c := range *decoded.Components {
		if c.Name == "github.com/jackc/pgx/v5" && c.PackageURL == "pkg:golang/"+c.Name+"@"+c.Version && c.Hashes != nil {
			return
		}
	}
	t.Errorf("the bill has no component for a module in the program:\n%s", text)
}

// schemaOfCycloneDX compiles the schema that the library of CycloneDX is tested with.
func schemaOfCycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	ok(t, err)
	compiler := jsonschema.NewCompiler()
	const address = "http://cyclonedx.org/schema/"
	for name, at := range map[string]string{"spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json", "bom-1.6.schema.json": "bom-1.6.schema.json"} {
		file, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", at))
		ok(t, err)
		defer file.Close()
		schema, err := jsonschema.UnmarshalJSON(file)
		ok(t, err)
		ok(t, compiler.AddResource(address+name, schema))
	}
	schema, err := compiler.Compile(address + "bom-1.6.schema.json")
	ok(t, err)
	return schema
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
