package console

import "net/http"

// mountHome sends visitors to where they are needed: to what fails, or else to the overview.
func (c *Console) mountHome() {
	c.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		q, err := c.admit(w, r)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		to := "/overview"
		if seen, _ := c.pulse.now(q.ctx); seen.Wrong() {
			to = "/failures"
		}
		http.Redirect(w, r, c.cfg.Prefix+to, http.StatusSeeOther)
	})
	c.mountOverview()
}
