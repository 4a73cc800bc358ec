//! Signing heads. The signer believes nobody: a head must be proven to extend the last one it signed, which it keeps itself (L-6). The database may be rewritten and
//! hashed anew; what comes out of it then is not signed.

use crate::error::SignerError;
use crate::head::HeadFile;
use crate::points::point;
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Signer as Key, Verifier, compose};
use gpuledger_tlog::proof::verify_consistency;
use std::path::Path;
use std::sync::Arc;

/// A head that is to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of leaves.
    pub size: u64,
    /// Root over them.
    pub root: Hash,
    /// That it extends the last signed head.
    pub proof: Vec<Hash>,
}

/// A key and the last head it signed, both in files.
#[derive(Clone, Debug)]
pub struct FileSigner {
    key: Arc<Key>,
    head: HeadFile,
}

impl FileSigner {
    /// With a key and the file of its last head.
    pub fn new(key: Key, head: &Path) -> Self {
        Self { key: Arc::new(key), head: HeadFile::new(head) }
    }

    /// The public key.
    pub fn verifier(&self) -> &Verifier {
        self.key.verifier()
    }

    /// Signs the head of the empty log, for a log that is new. A file that is there stays.
    ///
    /// # Errors
    /// The file is there or cannot be written.
    pub fn begin(&self, path: &Path) -> Result<(), SignerError> {
        let empty = self.checkpoint(0, Hash::of_empty_tree());
        crate::key::write_new(path, &self.note(&empty)?)
    }

    /// The last signed head and its note.
    ///
    /// # Errors
    /// The file of the head.
    pub fn last(&self) -> Result<(Checkpoint, String), SignerError> {
        self.head.hold()?.read(self.verifier())
    }

    /// Signs a head that extends the last one. The new head is on disk when this returns; the same head again gives the note that stands.
    ///
    /// # Errors
    /// The head is smaller or no extension, or the file of the head cannot be replaced: nobody has a signature then.
    pub fn sign(&self, request: &Request) -> Result<String, SignerError> {
        let held = self.head.hold()?;
        let (last, standing) = held.read(self.verifier())?;
        let (asked, signed) = (request.size, last.size);
        if asked < signed {
            return Err(SignerError::Smaller { asked, signed });
        }
        if (asked, request.root) == (signed, last.root) {
            return Ok(standing);
        }
        verify_consistency(signed, last.root, asked, request.root, &request.proof)
            .map_err(|why| SignerError::Forked { asked, signed, why: why.to_string() })?;
        let note = self.note(&self.checkpoint(request.size, request.root))?;
        point("audit::before_head");
        held.replace(&note)?;
        Ok(note)
    }

    fn checkpoint(&self, size: u64, root: Hash) -> Checkpoint {
        Checkpoint { origin: self.verifier().name().to_owned(), size, root }
    }

    fn note(&self, head: &Checkpoint) -> Result<String, SignerError> {
        let text = head.text();
        // A log's key signs without a time.
        let line = self.key.sign(&text, 0);
        Ok(compose(&text, &[line])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::generate;
    use gpuledger_tlog::tree::{self, Node};
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    struct Tree(Vec<Hash>, BTreeMap<Node, Hash>);

    impl Tree {
        fn of(leaves: &[&str]) -> Self {
            let mut tree = Self(Vec::new(), BTreeMap::new());
            for (index, leaf) in (0..).zip(leaves) {
                let leaf = Hash::of_leaf(leaf.as_bytes());
                let left = |node| Ok::<_, Infallible>(tree.1[&node]);
                let new = tree::append(index, leaf, left).unwrap();
                tree.1.extend(new);
                tree.0.push(leaf);
            }
            tree
        }

        fn request(&self, old: u64, size: u64) -> Request {
            let stored = |node| Ok::<_, Infallible>(self.1[&node]);
            let root = tree::root(size, stored).unwrap();
            Request { size, root, proof: tree::consistency(old, size, stored).unwrap() }
        }
    }

    fn signer(folder: &Path) -> FileSigner {
        let (key, _) = generate("log.example/audit").unwrap();
        let head = folder.join("head");
        let signer = FileSigner::new(key, &head);
        signer.begin(&head).unwrap();
        signer
    }

    #[test]
    fn a_head_is_signed_only_where_it_extends_the_last_one_l_6() {
        let folder = tempfile::tempdir().unwrap();
        let signer = signer(folder.path());
        let (tree, other) = (Tree::of(&["a", "b", "c", "d", "e"]), Tree::of(&["a", "x", "c", "d", "e"]));
        let note = signer.sign(&tree.request(0, 3)).unwrap();
        assert_eq!(signer.sign(&tree.request(3, 3)).unwrap(), note, "the same head again");
        assert!(matches!(
            signer.sign(&tree.request(2, 2)),
            Err(SignerError::Smaller { asked: 2, signed: 3 })
        ));
        assert!(matches!(signer.sign(&other.request(3, 3)), Err(SignerError::Forked { .. })));
        assert!(matches!(signer.sign(&other.request(3, 5)), Err(SignerError::Forked { .. })));
        let without_proof = Request { proof: Vec::new(), ..tree.request(3, 5) };
        assert!(matches!(signer.sign(&without_proof), Err(SignerError::Forked { .. })));
        assert_eq!(signer.last().unwrap().1, note, "a refusal changes nothing");
        signer.sign(&tree.request(3, 5)).unwrap();
        assert_eq!(signer.last().unwrap().0.size, 5);
    }

    #[test]
    fn without_its_last_head_or_with_a_changed_one_nothing_is_signed_l_6() {
        let folder = tempfile::tempdir().unwrap();
        let signer = signer(folder.path());
        let tree = Tree::of(&["a", "b"]);
        signer.sign(&tree.request(0, 2)).unwrap();
        let path = folder.path().join("head");
        let note = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, note.replace("\n2\n", "\n1\n")).unwrap();
        assert!(matches!(signer.sign(&tree.request(1, 2)), Err(SignerError::File { .. })));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(signer.sign(&tree.request(0, 2)), Err(SignerError::File { .. })));
    }
}
