"""Room: gymnode.remote. `python -m gymnode.remote` and the zipapp's entry point."""

from gymnode.remote.main import main

if __name__ == "__main__":
    main()
