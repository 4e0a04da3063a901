package server

import (
	"context"
	"fmt"

	"forge/cmd/forge/settings"
	"forge/pipeline/store"
)

func openStore(ctx context.Context, o Options) (*store.DB, error) {
	if o.Database != "" {
		o.Config.DatabaseURL = settings.NewSecret(o.Database)
	}
	db, err := o.Config.OpenStore(ctx, o.Log)
	if store.Unsound(err) {
		err = fmt.Errorf("%w\n%s", err, wayBack(ctx, o.Config))
	}
	return db, err
}

// wayBack tells how what was in a database is to be had again. It is for a person to do:
// what happened since the backup, and why the file is as it is, a program cannot judge.
func wayBack(ctx context.Context, c settings.Config) string {
	dir := c.BackupDir
	if copied := store.Rescued(c.DatabaseURL.Reveal()); store.Sound(ctx, copied) == nil {
		return fmt.Sprintf("A server that ran when the file was lost has copied all that was in it: `forge restore %s` puts that in the database's place; then start the server again.", copied)
	}
	list, err := Backups(dir)
	for _, b := range list {
		if store.Sound(ctx, b.Path) == nil {
			return fmt.Sprintf("The newest sound backup is of %s. `forge restore %s` puts it in the database's place and moves what is there aside; "+
				"then start the server again: it looks at GitHub for what was done since.", b.At.Format("2006-01-02 15:04 UTC"), b.Path)
		}
	}
	if err != nil {
		return fmt.Sprintf("The backups cannot be listed: %v", err)
	}
	return fmt.Sprintf("There is no sound backup in %s; `forge restore FILE` takes one from elsewhere.", dir)
}
