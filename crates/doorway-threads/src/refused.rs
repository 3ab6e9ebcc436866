//! What must not compile, each beside a twin that does compile. The twin shows that the one line
//! that differs is the reason.

/// A seat cannot be cloned.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [left, _right] = room.split().unwrap();
/// let moved = left;
/// ```
/// ```compile_fail,E0599
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [left, _right] = room.split().unwrap();
/// let doubled = left.clone();
/// ```
struct SeatClone;

/// A seat cannot be shared.
///
/// ```
/// # use doorway_threads::{OwnedSeat, algorithms::peterson::Peterson};
/// fn sent<T: Send>() {}
/// sent::<OwnedSeat<Peterson, u32>>();
/// ```
/// ```compile_fail,E0277
/// # use doorway_threads::{OwnedSeat, algorithms::peterson::Peterson};
/// fn shared<T: Sync>() {}
/// shared::<OwnedSeat<Peterson, u32>>();
/// ```
struct SharedSeat;

/// A seat cannot be locked twice.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _right] = room.split().unwrap();
/// let one = left.lock();
/// drop(one);
/// let two = left.lock();
/// ```
/// ```compile_fail,E0499
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _right] = room.split().unwrap();
/// let one = left.lock();
/// let two = left.lock();
/// drop(one);
/// ```
struct SecondLock;

/// The seats of a room cannot be borrowed twice.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _] = room.split().unwrap();
/// drop(left.lock());
/// let [mut again, _] = room.split().unwrap();
/// ```
/// ```compile_fail,E0499
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _] = room.split().unwrap();
/// let [mut again, _] = room.split().unwrap();
/// drop(left.lock());
/// ```
struct SecondSplit;

/// No lock can be made of a refuted algorithm.
///
/// ```
/// # use doorway_threads::{Room, algorithms::{hyman::Hyman, peterson::Peterson}};
/// let room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// ```
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::{hyman::Hyman, peterson::Peterson}};
/// let room: Room<Hyman, u32> = Room::new(2, 0).unwrap();
/// ```
struct RefutedRoom;

/// An algorithm in which a process cannot give up has no `try_lock`.
///
/// ```
/// # use doorway_threads::{Room, algorithms::{dekker::Dekker, peterson::Peterson}};
/// let mut room: Room<Peterson, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _right] = room.split().unwrap();
/// left.try_lock();
/// ```
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::{dekker::Dekker, peterson::Peterson}};
/// let mut room: Room<Dekker, u32> = Room::new(2, 0).unwrap();
/// let [mut left, _right] = room.split().unwrap();
/// left.try_lock();
/// ```
struct TryLock;

/// A value that cannot be sent cannot be reached from other threads.
///
/// ```
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// fn shared<T: Sync>() {}
/// shared::<Room<Peterson, std::cell::Cell<u32>>>();
/// ```
/// ```compile_fail,E0277
/// # use doorway_threads::{Room, algorithms::peterson::Peterson};
/// fn shared<T: Sync>() {}
/// shared::<Room<Peterson, std::rc::Rc<u32>>>();
/// ```
struct UnsendableValue;
