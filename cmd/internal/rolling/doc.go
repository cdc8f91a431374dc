// Package rolling tests rolling deploys: the command of the previous release and that of this one share a store while jobs flow.
package rolling
