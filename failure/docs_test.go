package failure

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestThePageListsEveryBuiltInCodeAsItIs(t *testing.T) {
	page, err := os.ReadFile("../docs/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range (*Taxonomy)(nil).Codes() {
		retried := "final"
		if c.Retryable {
			retried = "retried"
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %d | %s | %s |", c.Name, c.Category, retried, c.Blame, c.HTTPStatus, c.Message, c.Remedy)
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/failures.md lacks this row:\n%s", row)
		}
	}
}
